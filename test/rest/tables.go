package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"antipode/api/wire"
	"antipode/geo"
)

// Entity is the properties of an entity as JSON has them.
type Entity map[string]any

// CreateTable creates a table; an existing one is not an error here.
func (c *Client) CreateTable(ctx context.Context, table string) error {
	a, err := c.Do(ctx, geo.Table, Request{
		Method: http.MethodPost, Path: "/Tables", Header: jsonHeader(),
		Body: []byte(`{"TableName":"` + table + `"}`),
	})
	return expect(a, err, "create table "+table, "TableAlreadyExists")
}

// Insert adds an entity without asking for it back.
func (c *Client) Insert(ctx context.Context, table string, e Entity) (Answer, error) {
	h := jsonHeader()
	h["Prefer"] = "return-no-content"
	return c.writeEntity(ctx, http.MethodPost, "/"+table, h, e)
}

// Merge merges into the entity if its tag is match; "*" is any.
func (c *Client) Merge(ctx context.Context, table, match string, e Entity) (Answer, error) {
	return c.conditional(ctx, "MERGE", table, match, e)
}

// Replace replaces the entity if its tag is match; "" is an upsert.
func (c *Client) Replace(ctx context.Context, table, match string, e Entity) (Answer, error) {
	return c.conditional(ctx, http.MethodPut, table, match, e)
}

func (c *Client) conditional(ctx context.Context, method, table, match string, e Entity) (Answer, error) {
	h := jsonHeader()
	if match != "" {
		h["If-Match"] = match
	}
	return c.writeEntity(ctx, method, entityPath(table, e["PartitionKey"].(string), e["RowKey"].(string)), h, e)
}

func (c *Client) writeEntity(ctx context.Context, method, path string, h map[string]string, e Entity) (Answer, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return Answer{}, fmt.Errorf("rest: entity: %w", err)
	}
	return c.Do(ctx, geo.Table, Request{Method: method, Path: path, Header: h, Body: body})
}

// DeleteEntity deletes the entity if its tag is match; "*" is any.
func (c *Client) DeleteEntity(ctx context.Context, table, match, pk, rk string) (Answer, error) {
	h := jsonHeader()
	h["If-Match"] = match
	return c.Do(ctx, geo.Table, Request{Method: http.MethodDelete, Path: entityPath(table, pk, rk), Header: h})
}

// GetEntity reads one entity; its properties are nil unless the status is 200.
func (c *Client) GetEntity(ctx context.Context, table, pk, rk string) (Entity, Answer, error) {
	a, err := c.Do(ctx, geo.Table, Request{Method: http.MethodGet, Path: entityPath(table, pk, rk), Header: jsonHeader()})
	if err != nil || a.Status != http.StatusOK {
		return nil, a, err
	}
	var e Entity
	if err := json.Unmarshal(a.Body, &e); err != nil {
		return nil, a, fmt.Errorf("rest: entity %s/%s: %w in %.200q", pk, rk, err, a.Body)
	}
	return e, a, nil
}

// CommitTime returns the commit time in an answer's ETag: an entity's tag spells
// it out, a blob's counts its ticks.
func (a Answer) CommitTime() (geo.Timestamp, bool) {
	tag := a.Header.Get("ETag")
	if ts, ok := wire.ParseTableETag(tag); ok {
		return ts, true
	}
	return parseBlobETag(tag)
}

func entityPath(table, pk, rk string) string {
	return "/" + table + entityKeyPart(pk, rk)
}

func entityKeyPart(pk, rk string) string {
	return "(PartitionKey='" + escapeKey(pk) + "',RowKey='" + escapeKey(rk) + "')"
}

func escapeKey(key string) string { return url.PathEscape(strings.ReplaceAll(key, "'", "''")) }

func jsonHeader() map[string]string {
	return map[string]string{
		"Accept":       "application/json;odata=nometadata",
		"Content-Type": "application/json",
	}
}

// expect turns an answer that is neither a success nor one of the codes into an
// error.
func expect(a Answer, err error, what string, codes ...string) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if a.OK() {
		return nil
	}
	for _, code := range codes {
		if a.Code == code {
			return nil
		}
	}
	return fmt.Errorf("%s: %v", what, a)
}
