package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
)

// --accounts takes one key or two, one being both, and refuses the rest by name or by
// number, without repeating what may be a key (table).
func TestParseAccounts(t *testing.T) {
	one, two := base64.StdEncoding.EncodeToString([]byte("one")), base64.StdEncoding.EncodeToString([]byte("two"))
	got, err := parseAccounts("photos:" + one + ", mail:" + one + ":" + two)
	require.NoError(t, err)
	require.Equal(t, []account{
		{"photos", []byte("one"), []byte("one")}, {"mail", []byte("one"), []byte("two")},
	}, got)
	got, err = parseAccounts("")
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.True(t, got[0].public())
	for text, says := range map[string]string{
		devKey:                                  "number 1 is not",
		"photos":                                "photos is not name:key1[:key2]",
		"Photos:" + one:                         "number 1 is not",
		"photos:":                               "key1 of photos is not base64",
		"photos:???":                            "key1 of photos is not base64",
		"photos:" + one + ":":                   "key2 of photos is not base64",
		"photos:" + one + ":secret!":            "key2 of photos is not base64",
		"photos:" + one + ":" + two + ":" + one: "photos is not name:key1[:key2]",
		"photos:" + one + ",photos:" + two:      "photos is there twice",
		"photos:" + one + ",":                   "number 2 is not",
	} {
		_, err := parseAccounts(text)
		require.ErrorContains(t, err, says, text)
		for _, secret := range []string{one, two, "secret"} {
			require.NotContains(t, err.Error(), secret)
		}
	}
}

// The connection string that a start prints has the key that everybody knows, and none that
// was given.
func TestConnectionStringWithoutKey(t *testing.T) {
	info := wire.AccountInfo{Endpoints: []wire.Endpoint{{Service: "blob", Primary: "http://127.0.0.1:10000/x"}}}
	known, err := parseAccounts("")
	require.NoError(t, err)
	require.Contains(t, known[0].connectionString("bin/antipodectl", info), "AccountKey="+devKey+";")
	secret := base64.StdEncoding.EncodeToString([]byte("secret"))
	given, err := parseAccounts("photos:" + secret)
	require.NoError(t, err)
	text := given[0].connectionString("bin/antipodectl", info)
	require.NotContains(t, text, secret)
	require.Contains(t, text, "AccountKey=<key1>;")
	require.Contains(t, text, "antipodectl account show photos")
	both, err := parseAccounts("photos:" + secret + ":" + devKey)
	require.NoError(t, err)
	require.NotContains(t, both[0].connectionString("bin/antipodectl", info), secret)
}

// A start that cannot make an account names --accounts only if the account itself was refused (table).
func TestNotMade(t *testing.T) {
	refused := func(status int) error { return fmt.Errorf("create: %w", &wire.Error{Status: status, Message: "why"}) }
	for _, c := range []struct {
		err  error
		want string
	}{
		{refused(http.StatusConflict), "--accounts: create: why"},
		{refused(http.StatusBadRequest), "--accounts: create: why"},
		{refused(http.StatusUnauthorized), "make account photos: create: why"},
		{errors.New("gateway ended"), "make account photos: gateway ended"},
	} {
		require.EqualError(t, notMade("photos", c.err), c.want)
	}
}
