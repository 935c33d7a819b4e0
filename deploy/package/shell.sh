#!/bin/sh
# Makes manual pages and completions of programs: shell.sh FOLDER PROGRAM... The programs are in the folder.
set -e
cd "$1"
shift
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$OLDPWD" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
rm -rf man completions
mkdir man completions
for program in "$@"; do
	"./$program" man man
	for shell in bash zsh fish; do
		"./$program" completion "$shell" >"completions/$program.$shell"
	done
done
gzip -n9 man/*
