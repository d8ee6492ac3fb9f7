#!/bin/sh
# Installs one role of nstorm from this folder, without an index; where systemd runs also its units.
#   ./install.sh [--undo] [FOLDER]        FOLDER is /opt/nstorm if not given
# It starts nothing, and needs the Python of the archive's name, with venv. --undo leaves storm.yaml and the jar alone.
set -eu
umask 022  # the service runs as another user
cd "$(dirname "$0")"
refuse() { echo "nstorm: $*" >&2; exit 2; }

undo=
if [ "${1:-}" = --undo ]; then undo=yes; shift; fi
into=${1:-/opt/nstorm}
[ $# -le 1 ] || refuse "type ./install.sh [--undo] [FOLDER]"
into=${into%/}
case $into in
    -*) refuse "$into is no folder: type ./install.sh [--undo] [FOLDER]" ;;
    *[!A-Za-z0-9._/-]* | *//* | */ | */./* | */. | */../* | */..) refuse "$into: type a plain path of A-Z, a-z, 0-9 and ._/-" ;;
    /*) ;;
    *) refuse "$into: type the whole path of the folder, since the unit names it" ;;
esac

units=/etc/systemd/system
has_systemd=
if [ "$(id -u)" = 0 ] && [ -d /run/systemd/system ]; then has_systemd=yes; fi

# A venv of this script, also one that pip could not fill, or of the same by hand.
is_ours() {
    [ -f "$into/pyvenv.cfg" ] && { [ -e "$into/bin/nstorm" ] || grep -qs "^prompt = 'nstorm'" "$into/pyvenv.cfg"; }
}

if [ -n "$undo" ]; then
    is_ours || refuse "$into: nothing of this script is there"
    # A unit of this role may start what is in another folder by now.
    for unit in nstorm-*.service; do
        if [ -n "$has_systemd" ] && grep -qsF "$into/bin/" "$units/$unit"; then
            systemctl disable --quiet --now "$unit"
            rm "$units/$unit"
            systemctl daemon-reload
        fi
    done
    for other in "$units"/nstorm-*.service; do
        if [ -f "$other" ] && grep -qF "$into/bin/" "$other"; then
            echo "nstorm: $other needs $into, which stays"
            exit 0
        fi
    done
    # A jar may lie here too, and a JVM that storm.yaml names it for would not start without it.
    (cd "$into" && rm -rf bin include lib lib64 share pyvenv.cfg)
    rmdir "$into" 2>/dev/null || echo "nstorm: $into stays, since it has other files: $(ls "$into" | tr '\n' ' ')"
    exit 0
fi

# The wheels have machine code: nstorm-0.2.0-cp311-cp311-linux_x86_64.whl is for python3.11 on x86_64.
wheel=$(echo nstorm-*.whl)
minor=${wheel#*-cp3}
python=python3.${minor%%-*}
machine=${wheel##*-linux_}
machine=${machine%.whl}
[ "$(uname -m)" = "$machine" ] || refuse "this archive is for $machine, and this machine is $(uname -m): take the archive for it"
"$python" -c "" 2>/dev/null || refuse "this archive is for $python, which is not here: install it, or take the archive for a Python that is here"

if ! is_ours; then
    for one in bin include lib lib64 share; do  # all that --undo removes
        [ ! -e "$into/$one" ] || refuse "$into: has the $one of another program: name a folder of its own"
    done
fi
"$python" -m venv "$into" --prompt nstorm || refuse "$into: cannot be made; Debian has venv in the package python3-venv"
# Without force pip keeps an earlier build of the same version, and does not name it.
"$into/bin/pip" install --quiet --no-index --find-links . --require-hashes --force-reinstall -r requirements.txt
# They are as large as an agent, and a later run makes them again.
"$into/bin/pip" uninstall --quiet --quiet --yes setuptools pip
for unit in nstorm-*.service; do
    name=${unit%.service}
    if [ -z "$has_systemd" ]; then
        echo "$name: to start it type  $into/bin/nstorm ${name#nstorm-} --conf /etc/storm/storm.yaml"
        continue
    fi
    made=$(sed "s|/opt/nstorm/|$into/|" "$unit")
    if [ ! -f "$units/$unit" ]; then
        printf '%s\n' "$made" > "$units/$unit"
    elif [ "$made" != "$(cat "$units/$unit")" ]; then
        echo "nstorm: $units/$unit stays as it is: compare it with $PWD/$unit"
    fi
    systemctl daemon-reload
    if systemctl is-active --quiet "$unit"; then  # on what was installed before
        echo "$name: to take up this version type  systemctl restart $unit"
    else
        echo "$name: to start it type  systemctl enable --now $unit"
    fi
done
