#!/usr/bin/env bash
# Checks for Python's venv, a JDK of 17 or later and Maven; as root on Debian it installs what is missing.
set -euo pipefail
python=${1:-python3}

packages=()
"$python" -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
version=$(javac -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p' || true)
if [ "${version:-0}" -lt 17 ]; then packages+=(openjdk-17-jdk-headless); fi
command -v mvn >/dev/null || packages+=(maven)
if [ ${#packages[@]} -eq 0 ]; then exit 0; fi

if [ "$(id -u)" -ne 0 ] || [ ! -e /etc/debian_version ]; then
    echo "nstorm needs Python's venv, a JDK of 17 or later and Maven. On Debian, type:" >&2
    echo "    sudo apt-get update && sudo apt-get install -y ${packages[*]}" >&2
    exit 1
fi
echo "installing ${packages[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${packages[@]}"
