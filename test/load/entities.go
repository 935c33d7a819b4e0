package load

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"antipode/geo"
	"antipode/test/oracle"
	"antipode/test/rest"
)

// entityFillBytes is the size of each half of an entity.
const entityFillBytes = 300

// noTag is a tag that no entity has, in form like one that it had long ago.
const noTag = `W/"datetime'2001-01-01T00%3A00%3A00.0000000Z'"`

// fill returns text that depends on the key, the version and which of the two
// parts of an entity it is for.
func fill(key, part string, v oracle.Version) string {
	word := fmt.Sprintf("%s %s %d ", key, part, v)
	return strings.Repeat(word, entityFillBytes/len(word)+1)
}

// entityValue returns the properties that a write of version v sends: a merge
// sends its own half only.
func entityValue(key string, v oracle.Version, half bool) rest.Entity {
	pk, rk := entityKeys(key)
	e := rest.Entity{"PartitionKey": pk, "RowKey": rk, "Last": v, "LastFill": fill(key, "last", v)}
	if !half {
		e["Base"], e["BaseFill"] = v, fill(key, "base", v)
	}
	return e
}

func entityKeys(key string) (pk, rk string) {
	pk, rk, _ = strings.Cut(key[2:], "/")
	return pk, rk
}

// entityState reads back what entityValue wrote; every property must belong to
// the versions the entity names.
func entityState(key string, e rest.Entity) (oracle.State, error) {
	last, ok1 := e["Last"].(float64)
	base, ok2 := e["Base"].(float64)
	s := oracle.State{Present: true, Last: oracle.Version(last), Base: oracle.Version(base)}
	if !ok1 || !ok2 || e["LastFill"] != fill(key, "last", s.Last) || e["BaseFill"] != fill(key, "base", s.Base) {
		return s, fmt.Errorf("%w: entity %s claims %v: %.120v", errTorn, key, s, e)
	}
	return s, nil
}

func (c *client) sendEntity(ctx context.Context, op operation) (rest.Answer, error) {
	pk, rk := entityKeys(op.key)
	match := op.match
	if op.doomed {
		match = noTag
	}
	switch op.verb {
	case remove:
		return c.Primary.DeleteEntity(ctx, table, match, pk, rk)
	case merge:
		return c.Primary.Merge(ctx, table, match, entityValue(op.key, op.v, true))
	}
	return c.Primary.Insert(ctx, table, entityValue(op.key, op.v, false))
}

// readEntity reads one entity.
func readEntity(ctx context.Context, c *rest.Client, key string) (oracle.Read, error) {
	pk, rk := entityKeys(key)
	e, a, err := c.GetEntity(ctx, table, pk, rk)
	if notThere(a, err) {
		return oracle.Read{}, nil
	}
	if err := unanswered(key, a, err); err != nil {
		return oracle.Read{}, err
	}
	r := oracle.Read{ETag: a.Header.Get("ETag")}
	r.At, _ = a.CommitTime()
	r.State, err = entityState(key, e)
	return r, err
}

// rowRead is what a query says of one entity.
func rowRead(key string, e rest.Entity) (oracle.Read, error) {
	var r oracle.Read
	var err error
	r.ETag, _ = e[rest.ETagProperty].(string)
	r.At = commitTime(r.ETag)
	r.State, err = entityState(key, e)
	return r, err
}

// commitTime is the time that a tag spells, zero where it spells none.
func commitTime(etag string) geo.Timestamp {
	at, _ := rest.Answer{Header: http.Header{"Etag": {etag}}}.CommitTime()
	return at
}
