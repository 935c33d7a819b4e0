package tables

import "antipode/services/tables/entity"

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

// Contains reports whether the entity is inside.
func (k *KeyRange) Contains(pk, rk string) bool {
	if c := entity.Compare(pk, k.FromPK); c < 0 || c == 0 && entity.Compare(rk, k.FromRK) < 0 {
		return false
	}
	if k.Open {
		return true
	}
	c := entity.Compare(pk, k.ToPK)
	return c < 0 || c == 0 && (k.ToRK == "" || entity.Compare(rk, k.ToRK) <= 0)
}
