package atom

import (
	"bytes"
	"encoding/xml"
	"strings"

	"antipode/api/tables/edm"
	"antipode/api/tables/odata"
	"antipode/services/storageerr"
	"antipode/services/tables/entity"
)

// propertiesMax bounds properties, nulls and keys included: TooManyProperties.
const propertiesMax = 1024

// atomSpaceHTTPS is what some samples have in place of atomSpace.
const atomSpaceHTTPS = "https://www.w3.org/2005/Atom"

// DecodeEntity reads an Atom entry by the rules of protocol/table.md 5.2 and 7 into the stored
// form. Every limit of a single property and their number is checked; the size of the whole is
// entity.CheckSize's, who knows the keys and the result of a Merge. The result does not share
// memory with body.
func (Codec) DecodeEntity(body []byte, mode odata.Mode) (in odata.Incoming, err error) {
	b := entity.Build(make([]byte, 0, len(body)/2))
	var buf [256]byte
	err = properties(body, func(p property) error {
		switch p.name {
		case entity.PartitionKey:
			in.PK, in.HasPK, err = p.key()
			return err
		case entity.RowKey:
			in.RK, in.HasRK, err = p.key()
			return err
		}
		name := []byte(p.name)
		switch {
		case p.typ == 0:
			return storageerr.InvalidInput
		case p.null:
			return entity.ValidateName(name)
		}
		value, err := edm.ParseValue(buf[:0], name, p.typ, p.value())
		if err != nil {
			return err
		}
		return b.Add(entity.Property{Name: name, Type: p.typ, Value: value})
	})
	if err != nil {
		return odata.Incoming{}, err
	}
	in.Props = b.Bytes()
	if mode == odata.Insert {
		if err := in.CheckKeys(); err != nil {
			return odata.Incoming{}, err
		}
	}
	return in, nil
}

// DecodeTableName reads the body of Create Table and returns a legal table name.
func (Codec) DecodeTableName(body []byte) (name string, err error) {
	has := false
	err = properties(body, func(p property) error {
		if p.name == "TableName" {
			name, has, err = p.key()
		}
		return err
	})
	if err == nil && !has {
		err = storageerr.InvalidInput
	}
	if err != nil {
		return "", err
	}
	return name, entity.ValidateTableName(name)
}

// property is an element of m:properties.
type property struct {
	name string
	typ  entity.Type // 0 is none of the service
	null bool
	text []byte // only until the next property is read
}

// key returns the text of a key, which is a String; null counts as missing.
func (p property) key() (text string, has bool, err error) {
	if p.typ != entity.String {
		return "", false, storageerr.InvalidInput
	}
	return string(p.text), !p.null, nil
}

// value is the text without the white space that types other than String may have around them,
// and Base64 in it.
func (p property) value() []byte {
	switch p.typ {
	case entity.String:
		return p.text
	case entity.Binary:
		out := p.text[:0]
		for _, c := range p.text {
			if !isSpace(c) {
				out = append(out, c)
			}
		}
		return out
	}
	return bytes.Trim(p.text, white)
}

// properties calls add with each property of an entry but Timestamp, in their order. Anything else in it is
// ignored. An error is that of add or a row of storageerr.
func properties(body []byte, add func(property) error) error {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	r := newReader(body)
	root, err := r.start()
	if err != nil {
		return err
	}
	if root == nil || !isAtom(root.Name, "entry") {
		return storageerr.InvalidInput
	}
	found := false
	list := func(e *xml.StartElement) error { return r.list(e, &found, add) }
	err = r.children(func(e *xml.StartElement) error {
		if isAtom(e.Name, "content") {
			return r.children(list)
		}
		return list(e)
	})
	if err != nil {
		return err
	}
	// What follows the entry is white space, or comments.
	if e, err := r.start(); err != nil || e != nil || !found {
		return storageerr.InvalidInput
	}
	return nil
}

func isAtom(n xml.Name, local string) bool {
	return n.Local == local && (n.Space == atomSpace || n.Space == atomSpaceHTTPS)
}

// list reads an element that may be m:properties, which an entry has once.
func (r *reader) list(e *xml.StartElement, found *bool, add func(property) error) error {
	if e.Name.Space != metaSpace || e.Name.Local != "properties" {
		return r.skip()
	}
	if *found {
		return storageerr.InvalidInput
	}
	*found = true
	seen := make(map[string]struct{})
	return r.children(func(e *xml.StartElement) error {
		if e.Name.Space != dataSpace || e.Name.Local == entity.Timestamp { // Which is of any shape.
			return r.skip()
		}
		if len(seen) == propertiesMax {
			return storageerr.TooManyProperties
		}
		p, err := r.property(e)
		if err != nil {
			return err
		}
		if _, twice := seen[p.name]; twice {
			return storageerr.DuplicateProperties
		}
		seen[p.name] = struct{}{}
		return add(p)
	})
}

// property reads the element of a property.
func (r *reader) property(e *xml.StartElement) (p property, err error) {
	p = property{name: e.Name.Local, typ: entity.String}
	for _, a := range e.Attr {
		if a.Name.Space != metaSpace {
			continue
		}
		switch a.Name.Local {
		case "type":
			p.typ, _ = entity.ParseType([]byte(a.Value))
		case "null":
			p.null = a.Value == "1" || strings.EqualFold(a.Value, "true")
		}
	}
	p.text, err = r.only()
	return p, err
}
