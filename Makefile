# The newcomer's door. What stands behind it are CMake presets: see CONTRIBUTING.md.
.PHONY: test demo bench-store bench-filter bench-policies bench-sightings asan tsan lint packages

test: packages
	cmake --preset release
	cmake --build --preset release
	ctest --preset release

# make bench-store measures the disk cache beside the bare disk, and with ten million objects (6 GB).
bench-store: packages
	cmake --preset release
	cmake --build --preset release --target store_bench
	build/release/store_bench --directory build/store-bench --json build/store-bench.json

# make bench-sightings measures what it costs to keep sightings for a restart (400 MB).
bench-sightings: packages
	cmake --preset release
	cmake --build --preset release --target sightings_bench
	build/release/sightings_bench --directory build/sightings-bench --json build/sightings-bench.json

# make bench-policies prints the table of docs/admission.md: memory, rate and speed of each structure.
bench-policies: packages
	cmake --preset release
	cmake --build --preset release --target policy_table
	build/release/policy_table --json build/policy-table.json

# make bench-filter measures a sighting beside a memory access and beside other filters (1.5 GB of memory, minutes).
bench-filter: packages
	cmake --preset release
	cmake --build --preset release --target filter_bench
	build/release/filter_bench --json build/filter-bench.json

# make demo TRACE=file.csv.gz replays a real trace.
demo: packages
	cmake --preset release
	cmake --build --preset release --target secondsight secondsight-load
	build/release/secondsight-load demo --proxy build/release/secondsight --out build/demo \
	  $(if $(TRACE),--trace "$(TRACE)")

asan tsan: packages
	cmake --workflow --preset $@

lint: packages
	packaging/install_packages.sh lint
	git ls-files '*.h' '*.cc' | xargs clang-format-14 --dry-run --Werror
	cmake --workflow --preset lint

packages:
	packaging/install_packages.sh build test
