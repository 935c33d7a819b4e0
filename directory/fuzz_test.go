package directory

import (
	"context"
	"testing"

	"antipode/geo"
	"antipode/services/catalog"
)

// Whatever comes as a reservation is an account that the other location may ask for, or
// refused.
func FuzzReserve(f *testing.F) {
	a := catalog.Account{Name: "acct", Redundancy: catalog.RAGRS, Primary: "north", Secondary: "south", Epoch: 1, Created: 2, Key1: []byte{1}}
	b, err := a.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := parseReserve(body, "south", "north")
		if err == nil && (a.Primary != geo.Location("north") || a.Redundancy.Geo() != (a.Secondary == "south") || !a.Name.Valid() || a.Active) {
			t.Fatalf("took %+v", a)
		}
	})
}

type answers []byte

func (a answers) Call(context.Context, string, []byte) ([]byte, error) { return a, nil }

// Whatever a reservation is answered, the caller takes it or errs.
func FuzzReserveAnswer(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"seen":{"number":3,"location":"south"}}`))
	f.Add([]byte(`{"status":409,"code":"AccountAlreadyExists","message":"m"}`))
	f.Fuzz(func(_ *testing.T, body []byte) {
		_ = NewRemotePeer(answers(body)).Reserve(context.Background(), catalog.Account{Name: "acct"})
	})
}
