package geo

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An account name is 3 to 24 lower-case letters and digits, and nothing else gets
// through to keys, subjects and host names (table).
func TestAccountValid(t *testing.T) {
	for name, want := range map[Account]bool{
		"abc":                             true,
		"000":                             true,
		"devstoreaccount1":                true,
		Account(strings.Repeat("z", 24)):  true,
		Account(strings.Repeat("z", 25)):  false,
		"":                                false,
		"ab":                              false,
		"Abc":                             false,
		"ab-secondary":                    false,
		"a.b":                             false,
		"a b":                             false,
		"abc\x00":                         false,
		"äöü":                             false,
		Account("abc" + SecondarySuffix):  false,
		Account("`az{"):                   false,
		Account("/09:"):                   false,
		Account(strings.Repeat("9", 255)): false,
	} {
		require.Equal(t, want, name.Valid(), "%q", name)
	}
}

// The suffix -secondary is cut once and from the end only; no valid account name
// holds it, so the two endpoints cannot be mixed up (table).
func TestSplitSecondary(t *testing.T) {
	for label, want := range map[string]struct {
		account   Account
		secondary bool
	}{
		"acct":                     {"acct", false},
		"acct-secondary":           {"acct", true},
		"acct-secondary-secondary": {"acct-secondary", true},
		"-secondary":               {"", true},
		"acct-secondary.blob":      {"acct-secondary.blob", false},
		"acct-Secondary":           {"acct-Secondary", false},
		"":                         {"", false},
	} {
		a, secondary := SplitSecondary(label)
		require.Equal(t, want.account, a, label)
		require.Equal(t, want.secondary, secondary, label)
	}
}

// The numbers of the services are in every key and record on disk, and their words
// are in hosts and subjects: both stay what they are (frozen table), and every
// service starts with the range of its own number (DESIGN section 5).
func TestServices(t *testing.T) {
	for number, word := range map[Service]string{1: "catalog", 2: "blob", 3: "queue", 4: "table"} {
		require.Equal(t, word, number.String())
		got, err := ParseService(word)
		require.NoError(t, err)
		require.Equal(t, number, got)
		require.Equal(t, RangeID(number), FirstRange(number))
	}
	require.Equal(t, [...]Service{Blob, Queue, Table}, Services)
	require.Equal(t, "service-9", Service(9).String())
	for _, word := range []string{"", "Blob", "blob ", "service-9", "files"} {
		_, err := ParseService(word)
		require.Error(t, err, word)
	}
}
