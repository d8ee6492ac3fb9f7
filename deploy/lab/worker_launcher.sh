#!/bin/bash
# What Storm's worker-launcher does with the same arguments, for a supervisor that runs as root.
set -eu
user=$1 command=$2
shift 2

as_user() {
    exec setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups "$@"
}

give() { # a folder, and the rights of its owner: the group is that of this process
    chmod -R "g+rwX,$2" "$1"
    find "$1" -type d -exec chmod g+s {} +
    chown -hR "$user:$(id -g)" "$1"
}

case $command in
    code-dir | blob) give "$1" u-w ;;
    artifacts-dir) give "$1" u+w ;;
    worker)
        give "$1" u+w
        cd "$1"
        umask 0027
        as_user bash "$2"
        ;;
    profiler) as_user bash "$2" ;;
    rmr) rm -rf -- "$1" ;;
    signal) as_user kill "-$2" "$1" ;;
    *)
        echo "worker_launcher.sh: $command is none of Storm's commands" >&2
        exit 1
        ;;
esac
