package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"

	wire "antipode/client/admin"
	"antipode/geo"
)

// The well-known development account (protocol/auth.md 4), so that
// UseDevelopmentStorage=true works.
const (
	devAccount = "devstoreaccount1"
	devKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// accountsEnv is the environment's form of --accounts.
const accountsEnv = "ANTIPODE_ACCOUNTS"

// accountsUsage describes --accounts.
const accountsUsage = "accounts as name:key1[:key2], separated by commas, keys in base64, of 16 bytes at least; without key2 key1 is both (also " +
	accountsEnv + "); default the development account"

// account is one of --accounts. A single given key is both keys.
type account struct {
	name       geo.Account
	key1, key2 []byte
}

// parseAccounts reads name:key1[:key2],...; empty means the development account. Errors repeat no
// key, because errors are logged.
func parseAccounts(text string) ([]account, error) {
	if text == "" {
		text = devAccount + ":" + devKey
	}
	var out []account
	for i, part := range strings.Split(text, ",") {
		fields := strings.Split(strings.TrimSpace(part), ":")
		name := geo.Account(fields[0])
		switch {
		case !name.Valid():
			return nil, fmt.Errorf("--accounts: number %d is not name:key1[:key2] with a name of 3 to 24 lower-case letters and digits", i+1)
		case len(fields) < 2 || len(fields) > 3:
			return nil, fmt.Errorf("--accounts: %s is not name:key1[:key2] with one or two keys", name)
		}
		a := account{name: name}
		for k, to := range []*[]byte{&a.key1, &a.key2} {
			if k+1 >= len(fields) {
				a.key2 = a.key1
				break
			}
			key, err := base64.StdEncoding.DecodeString(fields[k+1])
			if err != nil || len(key) == 0 {
				return nil, fmt.Errorf("--accounts: key%d of %s is not base64", k+1, name)
			}
			*to = key
		}
		for _, other := range out {
			if other.name == name {
				return nil, fmt.Errorf("--accounts: %s is there twice", name)
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// notMade is the error if an account could not be made. It names --accounts only if the account itself
// was refused: a process that ended, or a token that is not there, is no fault of the flag.
func notMade(name geo.Account, err error) error {
	var said *wire.Error
	if errors.As(err, &said) && (said.Status == http.StatusBadRequest || said.Status == http.StatusConflict) {
		return fmt.Errorf("--accounts: %w", err)
	}
	return fmt.Errorf("make account %s: %w", name, err)
}

// public reports whether the account's key is the well-known one.
func (a account) public() bool { return base64.StdEncoding.EncodeToString(a.key1) == devKey }

// connectionString is the connection string to print: without the key, unless the key is public. ctl: see ctlFor.
func (a account) connectionString(ctl string, info wire.AccountInfo) string {
	if a.public() {
		return wire.ConnectionString(info, wire.Keys{Name: a.name, Key1: devKey})
	}
	return wire.ConnectionString(info, wire.Keys{Name: a.name, Key1: "<key1>"}) +
		fmt.Sprintf("\n  with the key that was given; %s account show %s prints it whole", ctl, a.name)
}
