# Each target is a call to the script of the same name in scripts/; its guide says what each does.

PREFIX ?= /usr/local
PROFILE ?= release
export PREFIX DESTDIR PROFILE

.PHONY: build race test busy outlive soak ways courses reactions lint install

build:
	@cargo build --release --locked

# Everything `regatta race` takes can be given: make race ARGS="--full"
race:
	@scripts/race $(ARGS)

test:
	@scripts/test

# All tests five times beside two busy loops for each core; or make busy ARGS="TIMES"
busy:
	@scripts/busy $(ARGS)

# Jobs that outlive their launcher's host, five times beside busy loops; or make outlive ARGS="TIMES TESTS"
outlive:
	@scripts/outlive $(ARGS)

# Ten minutes; or make soak ARGS="SECONDS HOSTS WORKERS SEED"
soak:
	@scripts/soak $(ARGS)

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
