package odata

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"antipode/services/storageerr"
)

// The live forms of section 12, A.58, A.59.
func TestTokens(t *testing.T) {
	for key, token := range map[string]string{"contToken": "1!12!Y29udFRva2Vu", "1": "1!4!MQ--", "": "1!0!"} {
		if got := EncodeToken(key); got != token {
			t.Errorf("%q is %s, want %s", key, got, token)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.String().Draw(t, "key")
		token := EncodeToken(key)
		if strings.ContainsAny(token, " =") || token == "" {
			t.Fatalf("token %q", token)
		}
		for _, sent := range []string{token, strings.ReplaceAll(token, "+", " ")} {
			if got, err := DecodeToken(sent); err != nil || got != key {
				t.Fatalf("%q decodes to %q, %v", sent, got, err)
			}
		}
	})
	for _, token := range []string{
		"", "x", "2!0!", "1!4!MQ==", "1!3!MQ--", "1!04!MQ--", "1!4!MQ-", "1!4!M\nQ-", "1!4!!!!!", "1!4!/w--", "1!8!MQ--MQ--", "1!4!MR--", "1!-1!",
		"1!16384!" + strings.Repeat("A", 16384),
	} {
		if key, err := DecodeToken(token); !errors.Is(err, storageerr.InvalidInput) {
			t.Errorf("%.20q decodes to %.20q, %v", token, key, err)
		}
	}
}

func TestContinuation(t *testing.T) {
	for _, tc := range []struct {
		pk, rk string
		want   Continuation
		err    error
	}{
		{"", "", Continuation{}, nil},
		{"1!0!", "", Continuation{HasPK: true}, nil},
		{"1!4!MQ--", "1!0!", Continuation{PK: "1", HasPK: true, HasRK: true}, nil},
		{"1!4!MQ--", "1!4!Mg--", Continuation{PK: "1", RK: "2", HasPK: true, HasRK: true}, nil},
		{"", "1!4!Mg--", Continuation{}, storageerr.InvalidInput},
		{"garbage", "", Continuation{}, storageerr.InvalidInput},
		{"1!4!MQ--", "garbage", Continuation{}, storageerr.InvalidInput},
	} {
		got, err := ParseContinuation(tc.pk, tc.rk)
		if got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%q %q: %+v, %v", tc.pk, tc.rk, got, err)
		}
	}
}

// Any token gives a key or a row, and there is one token for a key.
func FuzzDecodeToken(f *testing.F) {
	f.Add("1!12!Y29udFRva2Vu")
	f.Add("1!4!MQ--")
	f.Fuzz(func(t *testing.T, token string) {
		key, err := DecodeToken(token)
		switch {
		case errors.Is(err, storageerr.InvalidInput):
		case err != nil:
			t.Fatal(err)
		case EncodeToken(key) != strings.ReplaceAll(token, " ", "+"):
			t.Fatalf("%q decodes to %q, which is %q", token, key, EncodeToken(key))
		}
	})
}

// A token of tokenBytesMax bytes is read, a longer one is not decoded.
func TestTokenIsBounded(t *testing.T) {
	longest := strings.Repeat("k", (tokenBytesMax-len("1!8184!"))/4*3)
	if key, err := DecodeToken(EncodeToken(longest)); err != nil || key != longest {
		t.Errorf("%d bytes: %v", len(longest), err)
	}
	if _, err := DecodeToken(EncodeToken(longest + "kkk")); !errors.Is(err, storageerr.InvalidInput) {
		t.Errorf("longer: %v", err)
	}
}
