package tables

// KeyRange is the entities between two keys, both inclusive, in the order of (PartitionKey, RowKey). The zero value
// is every entity.
type KeyRange struct {
	// FromPK and FromRK are the first key inside. It need not exist.
	FromPK, FromRK string
	// ToPK and ToRK are the last key inside, unless Open. An empty ToRK is the whole partition ToPK: no row is below
	// the empty RowKey, so nothing else could be meant.
	ToPK, ToRK string
	// Open means that there is no last key.
	Open bool
}
