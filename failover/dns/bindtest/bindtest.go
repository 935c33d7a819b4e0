// Package bindtest writes the files of a BIND for tests: a server on a port of this machine, with one zone that takes signed
// updates (RFC 2136, TSIG).
package bindtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Keys of the server, which have one secret: Updater may change every name of the zone, Reader none.
const (
	Updater = "antipode"
	Reader  = "reader"
)

const config = `
options {
	directory "%[1]s"; listen-on port %[2]d { 127.0.0.1; }; listen-on-v6 { none; }; pid-file none; session-keyfile "%[1]s/session.key";
	recursion no; dnssec-validation no; notify no; allow-transfer { none; };
};
controls { };
key "` + Updater + `" { algorithm hmac-sha256; secret "%[3]s"; };
key "` + Reader + `" { algorithm hmac-sha256; secret "%[3]s"; };
zone "%[4]s" { type primary; file "zone.db"; update-policy { grant ` + Updater + ` zonesub ANY; }; };
`

const records = `$TTL 5
@ IN SOA ns.%[1]s. hostmaster.%[1]s. 1 60 10 86400 5
@ IN NS ns
ns IN A 127.0.0.1
%[2]s`

// Write writes the files into the folder dir. secret is that of the keys, in base64; more are records of the zone besides those
// of its apex, a line each.
func Write(dir string, port int, zone, secret, more string) error {
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "named.conf"), fmt.Appendf(nil, config, dir, port, secret, zone), 0o600),
		os.WriteFile(filepath.Join(dir, "zone.db"), fmt.Appendf(nil, records, zone, more), 0o600),
	)
}

// Command is the command line that runs the server of a folder in the foreground.
func Command(dir string) []string {
	return []string{"named", "-g", "-4", "-n", "1", "-c", filepath.Join(dir, "named.conf")}
}
