"""One line that protects something, and what it is replaced by."""

from dataclasses import dataclass, field


@dataclass
class Mutation:
    name: str
    path: str
    old: str  # exactly once in the file
    new: str
    survives: str = ""  # why no test can notice, where none can
    tests: list = field(default_factory=list)  # programs below build/tests; none: the store's
