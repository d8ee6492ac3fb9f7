#!/usr/bin/env bash
# Checks for Python 3.11 with venv and headers, a C compiler, a JDK of 17 or later and Maven; as root on Debian it installs what is missing.
set -euo pipefail
python=${1:-python3}

headers='import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))'

missing() {
    packages=()
    "$python" -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
    "$python" -c "$headers" || packages+=(python3-dev)
    command -v gcc >/dev/null || packages+=(gcc libc6-dev)
    version=$(javac -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p' || true)
    # Of Debian 12 and later this is a JDK of 17 or later.
    if [ "${version:-0}" -lt 17 ]; then packages+=(default-jdk-headless); fi
    command -v mvn >/dev/null || packages+=(maven)
}

if command -v "$python" >/dev/null && ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "nstorm needs Python 3.11 or later, and $python is $("$python" -V); type  make setup PYTHON=python3.12" >&2
    echo "with the name of a later one (on Debian 12 or later: sudo apt-get install -y python3 python3-venv)." >&2
    exit 1
fi
missing
if [ ${#packages[@]} -eq 0 ]; then exit 0; fi

if [ "$(id -u)" -ne 0 ] || [ ! -e /etc/debian_version ]; then
    echo "nstorm needs Python's venv and headers, gcc, a JDK of 17 or later and Maven. On Debian, type:" >&2
    echo "    sudo apt-get update && sudo apt-get install -y ${packages[*]}" >&2
    exit 1
fi
echo "installing ${packages[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${packages[@]}"
missing
if [ ${#packages[@]} -ne 0 ]; then
    echo "installed, and yet not found on the PATH: ${packages[*]}; is another one first on it? See  javac -version" >&2
    exit 1
fi
