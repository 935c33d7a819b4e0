package admin

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each form in which a secret may stand in a text is removed, and what is beside it stays.
//
// Capability: Operation: `antipodectl support-bundle`.
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
		"nats://bob:p/w@10.0.0.1:4222: invalid port":                               "nats://[removed]@10.0.0.1:4222: invalid port",
		"nats://bob:p@ss'w,rd@10.0.0.1:4222 refused":                               "nats://[removed]@10.0.0.1:4222 refused",
		"x?u=https%3A%2F%2Fh%2Fb%3Fse%3D2%26sig%3Dabc%252Bdef&y=1":                 "x?u=https%3A%2F%2Fh%2Fb%3Fse%3D2%26sig%3D[removed]&y=1",
		`{\"key1\": \"ab/cd1234/\", \"b\": 1}`:                                     `{\"key1\": \"[removed]\", \"b\": 1}`,
		"password: a/b, next":                                                      "password: [removed], next",
		"this needs the admin token: open /nonexistent: no such file":              "this needs the admin token: open /nonexistent: no such file",
		"it has antipode-admin-" + strings.Repeat("0f", 32) + ".":                  "it has [removed].",
		"https://h.example/a?b=c@d and https://h.example/e":                        "https://h.example/a?b=c@d and https://h.example/e",
		"nothing of that: antipode_writes_total{service=\"blob\"} 7":               "nothing of that: antipode_writes_total{service=\"blob\"} 7",
	} {
		require.Equal(t, want, Scrub(text))
	}
}
