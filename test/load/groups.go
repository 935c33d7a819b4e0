package load

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"antipode/test/oracle"
	"antipode/test/rest"
)

// groupRows is the number of entities in a group.
const groupRows = 5

// rowKey is the key of one entity of a group, as if it were by itself.
func rowKey(group string, i int) string { return group + "-" + strconv.Itoa(i) }

// rowGroup returns the group of an entity of a query, "" if it is in none.
func rowGroup(pk, rk string) string {
	if rk == "" || rk[0] != kindGroup {
		return ""
	}
	return fmt.Sprintf("%c/%s/%s", kindGroup, pk, rk[:strings.LastIndexByte(rk, '-')])
}

// groupOps are the operations of a write of a group: one for each of its entities,
// and of all the forms that lead to the same.
func groupOps(op operation) []rest.Operation {
	out := make([]rest.Operation, groupRows)
	for i := range out {
		r := &out[i]
		r.Entity = entityValue(rowKey(op.key, i), op.v, op.verb == merge)
		plain := i%2 == 0
		switch {
		case op.verb == remove:
			r.Method, r.Match = http.MethodDelete, op.match
		case op.verb == merge:
			r.Method = "MERGE"
		case plain && !op.before.Present:
			r.Method = http.MethodPost
		default:
			r.Method = http.MethodPut
		}
		if plain && op.before.Present {
			r.Match = op.match
		}
	}
	if op.doomed {
		out[groupRows-1].Match = noTag
	}
	return out
}

// sendGroup sends one transaction. Its answer is the part that failed, or one with the
// tag that all parts have: a transaction has one commit time.
func (c *client) sendGroup(ctx context.Context, op operation) (rest.Answer, error) {
	parts, whole, err := c.Primary.Transact(ctx, table, groupOps(op))
	if err != nil || parts == nil {
		return whole, err
	}
	if len(parts) == 1 && !parts[0].OK() {
		return parts[0], nil
	}
	for _, p := range parts {
		if len(parts) != groupRows || !p.OK() || p.Header.Get("ETag") != parts[0].Header.Get("ETag") {
			return whole, fmt.Errorf("%w: %d parts: %v", ErrContradiction, len(parts), parts)
		}
	}
	return parts[0], nil
}

// readGroup reads a group by one query of one partition, which sees a transaction
// whole or not at all.
func readGroup(ctx context.Context, c *rest.Client, key string) (oracle.Read, error) {
	pk, rk := entityKeys(key)
	page, a, err := c.Query(ctx, table, rest.Query{
		Filter: fmt.Sprintf("PartitionKey eq '%s' and RowKey ge '%s-' and RowKey lt '%s.'", pk, rk, rk),
	})
	if err := unanswered(key, a, err); err != nil {
		return oracle.Read{}, err
	}
	if page.Next != (rest.Continuation{}) {
		return oracle.Read{}, fmt.Errorf("%w: %s: a page of %d", errNoAnswer, key, len(page.Entities))
	}
	return groupRead(key, page.Entities)
}

// groupRead checks the entities of a group that one query found.
func groupRead(key string, rows []rest.Entity) (oracle.Read, error) {
	var r oracle.Read
	for i, e := range rows {
		if i >= groupRows || e["RowKey"] != rowKey(key, i)[len("g/p0/"):] {
			return r, fmt.Errorf("%w: group %s: %d entities, %v among them", errSplit, key, len(rows), e["RowKey"])
		}
		row, err := rowRead(rowKey(key, i), e)
		if err != nil {
			return r, err
		}
		if i > 0 && row != r {
			return r, fmt.Errorf("%w: group %s: %v %s beside %v %s", errSplit, key, row.State, row.ETag, r.State, r.ETag)
		}
		r = row
	}
	if n := len(rows); n != 0 && n != groupRows {
		return r, fmt.Errorf("%w: group %s: %d of %d entities", errSplit, key, n, groupRows)
	}
	return r, nil
}
