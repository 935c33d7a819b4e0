package admin

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each form in which a secret may stand in a text is removed, and what is beside it stays.
func TestScrub(t *testing.T) {
	key := strings.Repeat("Az0+", 21) + "Aw=="
	for text, want := range map[string]string{
		"post https://hook.example/x?sv=1&sig=abc%2Bdef&se=2: EOF":                 "post https://hook.example/x?sv=1&sig=[removed]&se=2: EOF",
		"nats://bob:pw1@10.0.0.1:4222 refused":                                     "nats://[removed]@10.0.0.1:4222 refused",
		"AccountName=a;AccountKey=" + key + ";End":                                 "AccountName=a;AccountKey=[removed];End",
		"key " + key + " of a":                                                     "key [removed] of a",
		"Authorization: SharedKey acct:c2lnbmF0dXJl":                               "Authorization: SharedKey acct:[removed]",
		"Authorization: Bearer 0123456789abcdef":                                   "Authorization: Bearer [removed]",
		"-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----\nafter": "[removed]\nafter",
		`{"key1": "abcd1234", "name": "x"}`:                                        `{"key1": "[removed]", "name": "x"}`,
		"SUAM" + strings.Repeat("A2", 27) + " is a seed":                           "[removed] is a seed",
		"token_file: /etc/antipode/token\nkey: /etc/node.key":                      "token_file: /etc/antipode/token\nkey: /etc/node.key",
		"nothing of that: antipode_writes_total{service=\"blob\"} 7":               "nothing of that: antipode_writes_total{service=\"blob\"} 7",
	} {
		require.Equal(t, want, Scrub(text))
	}
}
