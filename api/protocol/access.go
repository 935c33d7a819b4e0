package protocol

import (
	"strings"

	"antipode/services/tables"
	"antipode/stamp/keys"
)

// Access is what the shared access signature of a request permits. A request that is signed with a key has none, and
// may do everything: the methods take nil for that.
type Access struct {
	// OfAccount means that the signature is one of the account, not of one container, blob, table or queue.
	OfAccount bool
	// Types are the resource types of an account signature: s, c and o.
	Types string
	// Letters are the permissions, those of a stored access policy included.
	Letters string
	// Hidden means that what is not permitted is answered as missing: so did the versions before 2015-04-05, except on
	// tables.
	Hidden bool
	// Table is the one table of a signature of the table service; empty for an account signature.
	Table string
	// Keys are the entities that it reaches; nil for all of the table.
	Keys *tables.KeyRange
	// Shows replaces headers in the answer to a read of a blob.
	Shows Shows
}

// Shows are the headers of an answer that a signature sets. What is empty it leaves as the blob has it.
type Shows struct {
	CacheControl, ContentDisposition, ContentEncoding, ContentLanguage, ContentType string
}

// OfTable reports whether the signature is good for a table, by any spelling of its name.
func (a *Access) OfTable(name string) bool {
	return a == nil || a.OfAccount || keys.TableContainer(name) == keys.TableContainer(a.Table)
}

// CreatesOnly reports whether a write may create a blob, and not overwrite one.
func (a *Access) CreatesOnly() bool { return a != nil && !strings.Contains(a.Letters, "w") }

// Tags reports whether the tags of blobs may be read and written.
func (a *Access) Tags() bool { return a == nil || strings.Contains(a.Letters, "t") }

// Replaces returns what a read of a blob shows in place of its own headers.
func (a *Access) Replaces() Shows {
	if a == nil {
		return Shows{}
	}
	return a.Shows
}
