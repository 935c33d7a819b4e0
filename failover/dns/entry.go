package dns

import (
	"errors"
	"fmt"
	"strings"

	"antipode/geo"
	"antipode/internal/identity"
	"antipode/services/catalog"
)

// Entry is where the names of an account lead to.
type Entry struct {
	Account geo.Account
	// Epoch is the account's present one; its location is the primary (R19).
	Epoch geo.Epoch
	// Secondary is empty where Redundancy has none.
	Secondary  geo.Location
	Redundancy catalog.Redundancy
}

// ErrEntry reports an entry that no catalog can have.
var ErrEntry = errors.New("dns: not an entry of a catalog")

// Clone returns where a clone of the account is, if there is one: that is not asked.
func (e Entry) Clone() (l geo.Location, exists bool) { return e.Secondary, e.Secondary != "" }

// Location returns where an account is served, of the name with or without geo.SecondarySuffix. The
// second one exists only where clients can read the secondary.
func (e Entry) Location(secondary bool) (l geo.Location, exists bool) {
	if secondary {
		return e.Secondary, e.Redundancy.Readable()
	}
	return e.Epoch.Location, true
}

// check returns ErrEntry for what would make names that are none, or a record that cannot be read back.
func (e Entry) check() error {
	known := e.Redundancy.Geo() || e.Redundancy == catalog.LRS
	switch {
	case !e.Account.Valid(), e.Epoch.IsZero(), !identity.ValidLabel(string(e.Epoch.Location)), !known,
		e.Redundancy.Geo() != (e.Secondary != ""), e.Secondary == e.Epoch.Location,
		e.Secondary != "" && !identity.ValidLabel(string(e.Secondary)):
		return fmt.Errorf("%w: %q", ErrEntry, fmt.Sprint(e))
	}
	return nil
}

// The form of a TXT record.
const (
	textVersion = "v=antipode1"
	rolePrimary = "primary"
	roleSecond  = "secondary"
)

// Text returns the text of an account's TXT record, of the primary name or the secondary one, such as
//
//	v=antipode1 epoch=3@south location=south role=primary secondary=north
//
// The last field is absent unless the secondary can be read: then the account has a second name.
func (e Entry) Text(secondary bool) string {
	role, l := rolePrimary, e.Epoch.Location
	if secondary {
		role, l = roleSecond, e.Secondary
	}
	text := fmt.Sprintf("%s epoch=%s location=%s role=%s", textVersion, e.Epoch, l, role)
	if e.Redundancy.Readable() && !secondary {
		text += " secondary=" + string(e.Secondary)
	}
	return text
}

// Text is what a TXT record of an account says.
type Text struct {
	Epoch    geo.Epoch
	Location geo.Location
	// Secondary of the primary name's record is the location of the second name; empty if there is none.
	Secondary geo.Location
	// OfSecondary is set for the record of the second name.
	OfSecondary bool
}

// ErrText reports a text that is not of this form.
var ErrText = errors.New("dns: not the text of an epoch")

// ParseText is the inverse of Entry.Text. The error is ErrText.
func ParseText(s string) (Text, error) {
	fields := strings.Split(s, " ")
	if len(fields) < 4 || len(fields) > 5 || fields[0] != textVersion {
		return Text{}, ErrText
	}
	values := map[string]string{}
	for i, key := range []string{"epoch", "location", "role", "secondary"}[:len(fields)-1] {
		value, found := strings.CutPrefix(fields[i+1], key+"=")
		if !found {
			return Text{}, ErrText
		}
		values[key] = value
	}
	epoch, ok := parseEpoch(values["epoch"])
	t := Text{
		Epoch: epoch, Location: geo.Location(values["location"]), Secondary: geo.Location(values["secondary"]),
		OfSecondary: values["role"] == roleSecond,
	}
	second := len(fields) == 5
	switch {
	case !ok, !identity.ValidLabel(string(t.Location)), !t.OfSecondary && values["role"] != rolePrimary,
		second && (t.OfSecondary || !identity.ValidLabel(string(t.Secondary))):
		return Text{}, ErrText
	}
	return t, nil
}

// parseEpoch is the inverse of geo.Epoch.String for an epoch that is not zero.
func parseEpoch(s string) (e geo.Epoch, ok bool) {
	e, ok = geo.ParseEpoch(s)
	return e, ok && identity.ValidLabel(string(e.Location))
}
