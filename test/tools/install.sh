#!/bin/bash
# Installs what the tests of this folder run, into Debian and into the folder $1. What cannot be built leaves its error
# in NAME.missing there, and the tests name it.
set -euo pipefail
dir=$(realpath -m "$1")
mkdir -p "$dir"
if ! dpkg -s rclone restic pgbackrest postgresql > "$dir/debian.log"; then
	apt-get update -qq && apt-get install -y -qq rclone restic pgbackrest postgresql
fi

# build NAME COMMAND... runs the command unless the program is there.
build() {
	local name=$1
	shift
	[ -x "$dir/$name" ] && return
	rm -f "$dir/$name.missing"
	timeout 1800 "$@" > "$dir/$name.log" 2>&1 || tail -n 2 "$dir/$name.log" > "$dir/$name.missing"
}

# azcopy is built as a requirement of an empty module: `go install` asks for the list of all versions first, which not
# every module proxy serves.
azcopy() {
	mkdir -p "$dir/azcopy-module"
	cd "$dir/azcopy-module"
	printf 'module programs\n\ngo 1.24\n\nrequire github.com/Azure/azure-storage-azcopy/v10 v10.21.2\n' > go.mod
	printf '//go:build tools\n\npackage programs\n\nimport _ "github.com/Azure/azure-storage-azcopy/v10"\n' > tool.go
	go mod tidy && go build -o "$dir/azcopy" github.com/Azure/azure-storage-azcopy/v10
}

# tofu is built in a copy of its module: its replacements count only there.
tofu() {
	local source
	source=$(cd "$dir" && go mod download -json github.com/opentofu/opentofu@v1.12.6 | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
	rm -rf "$dir/tofu-source" && cp -r "$source" "$dir/tofu-source" && chmod -R u+w "$dir/tofu-source"
	go build -C "$dir/tofu-source" -o "$dir/tofu" ./cmd/tofu
	rm -rf "$dir/tofu-source"
}
export -f azcopy tofu
export dir

build rclone env GOBIN="$dir" go install github.com/rclone/rclone@latest
build azcopy bash -ec azcopy
build tofu bash -ec tofu
build objstore.test go test -C "$(dirname "$0")/objstore" -c -o "$dir/objstore.test" .
