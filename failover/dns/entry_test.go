package dns

import (
	"strings"
	"testing"

	msg "github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/catalog"
)

// ParseText reads what Text writes, and the secondary's name is there only if the secondary can be read
// (table).
func TestText(t *testing.T) {
	for want, e := range map[string]Entry{
		"v=antipode1 epoch=3@north location=north role=primary secondary=south": in("pictures", 3, north, catalog.RAGRS),
		"v=antipode1 epoch=1@south location=south role=primary":                 in("mail", 1, south, catalog.GRS),
		"v=antipode1 epoch=2@south location=south role=primary ":                in("alone", 2, south, catalog.LRS),
	} {
		want = strings.TrimRight(want, " ")
		require.Equal(t, want, e.Text(false))
		got, err := ParseText(want)
		require.NoError(t, err)
		readable := geo.Location("")
		if e.Redundancy.Readable() {
			readable = e.Secondary
		}
		require.Equal(t, Text{Epoch: e.Epoch, Location: e.Epoch.Location, Secondary: readable}, got)
	}
	e := in("pictures", 3, north, catalog.RAGRS)
	require.Equal(t, "v=antipode1 epoch=3@north location=south role=secondary", e.Text(true))
	got, err := ParseText(e.Text(true))
	require.NoError(t, err)
	require.Equal(t, Text{Epoch: e.Epoch, Location: south, OfSecondary: true}, got)

	for _, bad := range []string{
		"", "v=spf1 -all", "v=antipode2 epoch=3@north location=north role=primary", "v=antipode1 epoch=0@north location=north role=primary",
		"v=antipode1 epoch=03@north location=north role=primary", "v=antipode1 epoch=3 location=north role=primary",
		"v=antipode1 epoch=3@north location=north role=third", "v=antipode1 epoch=3@north location=north role=secondary secondary=south",
		"v=antipode1  epoch=3@north location=north role=primary", "v=antipode1 epoch=3@north location=north role=primary secondary=",
		"v=antipode1 location=north epoch=3@north role=primary", "v=antipode1 epoch=3@north location=north role=primary secondary=south more",
		"v=antipode1 epoch=18446744073709551616@north location=north role=primary",
	} {
		_, err := ParseText(bad)
		require.ErrorIs(t, err, ErrText, bad)
	}
	// The longest text needs two strings of a TXT record.
	long := geo.Location(strings.Repeat("a", 63))
	e = Entry{Account: "acct", Epoch: geo.Epoch{Number: 1<<64 - 1, Location: long}, Secondary: geo.Location(strings.Repeat("b", 63)), Redundancy: catalog.RAGRS}
	packed, err := msg.NewRR(newZone(t).txt("acct.", e.Text(false)).String())
	require.NoError(t, err)
	require.Equal(t, e.Text(false), strings.Join(packed.(*msg.TXT).Txt, ""))
	require.Len(t, packed.(*msg.TXT).Txt, 2)
}

// Any text is refused, or is one that is written so.
func FuzzParseText(f *testing.F) {
	f.Add(in("pictures", 3, north, catalog.RAGRS).Text(false))
	f.Add(in("pictures", 3, north, catalog.RAGRS).Text(true))
	f.Add("v=antipode1 epoch=3@north location=south role=primary")
	f.Fuzz(func(t *testing.T, s string) {
		text, err := ParseText(s)
		if err != nil {
			require.ErrorIs(t, err, ErrText)
			return
		}
		var again string
		switch {
		case text.OfSecondary:
			again = Entry{Epoch: text.Epoch, Secondary: text.Location, Redundancy: catalog.RAGRS}.Text(true)
		case text.Location != text.Epoch.Location:
			return // It reads, and no entry has it.
		case text.Secondary != "":
			again = Entry{Epoch: text.Epoch, Secondary: text.Secondary, Redundancy: catalog.RAGRS}.Text(false)
		default:
			again = Entry{Epoch: text.Epoch, Redundancy: catalog.LRS}.Text(false)
		}
		require.Equal(t, s, again)
	})
}

// What no catalog can have is refused (table).
func TestCheckEntry(t *testing.T) {
	good := in("pictures", 3, north, catalog.RAGRS)
	require.NoError(t, good.check())
	for _, change := range []func(e *Entry){
		func(e *Entry) { e.Account = "x" },
		func(e *Entry) { e.Account = "Pictures" },
		func(e *Entry) { e.Account = "pictures-secondary" },
		func(e *Entry) { e.Epoch.Number = 0 },
		func(e *Entry) { e.Epoch.Location = "" },
		func(e *Entry) { e.Epoch.Location = "north.example" },
		func(e *Entry) { e.Secondary = "a b" },
		func(e *Entry) { e.Secondary = "" },
		func(e *Entry) { e.Secondary = north },
		func(e *Entry) { e.Redundancy = catalog.LRS },
		func(e *Entry) { e.Redundancy = "ZRS" },
	} {
		e := good
		change(&e)
		require.ErrorIs(t, e.check(), ErrEntry, "%+v", e)
	}
}
