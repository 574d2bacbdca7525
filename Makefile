# Each target is a call to the script of the same name in scripts/; its guide says what each does.

PREFIX ?= /usr/local
PROFILE ?= release
export PREFIX DESTDIR PROFILE

.PHONY: build race test lint install

build:
	@cargo build --release --locked

# Everything `regatta race` takes can be given: make race ARGS="--full"
race:
	@scripts/race $(ARGS)

test:
	@scripts/test

lint:
	@scripts/lint

# make install PREFIX=DIR [DESTDIR=DIR]
install:
	@scripts/install
