package odata

import (
	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/services/tables/entity"
)

// Mode says what the keys in a body mean.
type Mode byte

const (
	// Insert needs both keys in the body, and they must be legal.
	Insert Mode = iota
	// Update takes the keys from the URL: those in the body may be missing, null or
	// different, are not checked beyond being strings, and should not be used.
	Update
)

// Incoming is an entity as a request body gives it.
type Incoming struct {
	PK, RK       string
	HasPK, HasRK bool
	// Props is the property list in the form of package entity. Nulls are left out:
	// on Insert and replace they are not stored, on Merge they change nothing.
	Props []byte
}

// CheckKeys refuses an entity that is to be inserted and has not both keys, each a legal one.
func (in *Incoming) CheckKeys() error {
	if !in.HasPK || !in.HasRK {
		return storageerr.PropertiesNeedValue
	}
	if err := entity.ValidateKey(entity.PartitionKey, in.PK); err != nil {
		return err
	}
	return entity.ValidateKey(entity.RowKey, in.RK)
}

// Tables is the name of the set of an account's tables.
const Tables = "Tables"

// Set is what the documents of one answer show: a set of entities, or of tables.
type Set struct {
	// Base is the service root as the client addressed it, with its last slash.
	Base string
	// Account is the account's name, which types are named after.
	Account string
	// Table is the name as stored, or Tables.
	Table string
	// Updated is the time of the answer, which an Atom document shows.
	Updated geo.Timestamp
	// Select limits what an entity shows; nil shows everything.
	Select *Selection
}

// Place is where a row stands in a document.
type Place byte

const (
	// Alone: the row is the whole document.
	Alone Place = iota
	// First: the row is the first one of a feed.
	First
	// Later: the row follows another one in a feed.
	Later
)

// InFeed is the place of the row of a feed with this index.
func InFeed(index int) Place {
	if index == 0 {
		return First
	}
	return Later
}
