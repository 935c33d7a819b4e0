package rest

import (
	"context"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"antipode/geo"
)

// Source says where Put Block List looks for a block.
type Source string

// The sources of a block.
const (
	Committed   Source = "Committed"
	Uncommitted Source = "Uncommitted"
	Latest      Source = "Latest"
)

// Block is one entry of a block list. ID is the text before Base64.
type Block struct {
	ID string
	// Source is used by PutBlockList, and Size in bytes set by GetBlockList.
	Source Source
	Size   int64
}

// PutBlock uploads one block of a blob, which does not change what readers see.
func (c *Client) PutBlock(ctx context.Context, container, name, id string, body []byte) (Answer, error) {
	return c.Do(ctx, geo.Blob, Request{
		Method: http.MethodPut, Path: "/" + container + "/" + name,
		Query: "comp=block&blockid=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(id))),
		Body:  body,
	})
}

// PutBlockList makes the blob the blocks named, in their order.
func (c *Client) PutBlockList(ctx context.Context, container, name string, blocks []Block, w BlobWrite) (Answer, error) {
	var b strings.Builder
	b.WriteString("<BlockList>")
	for _, block := range blocks {
		id := base64.StdEncoding.EncodeToString([]byte(block.ID))
		fmt.Fprintf(&b, "<%s>%s</%s>", block.Source, id, block.Source)
	}
	b.WriteString("</BlockList>")
	return c.Do(ctx, geo.Blob, Request{
		Method: http.MethodPut, Path: "/" + container + "/" + name, Query: "comp=blocklist",
		Header: w.header(), Body: []byte(b.String()),
	})
}

// BlockLists are both lists of a blob.
type BlockLists struct{ Committed, Uncommitted []Block }

// GetBlockList reads both block lists of a blob; they are empty unless the status
// is 200.
func (c *Client) GetBlockList(ctx context.Context, container, name string) (BlockLists, Answer, error) {
	a, err := c.Do(ctx, geo.Blob, Request{
		Method: http.MethodGet, Path: "/" + container + "/" + name, Query: "comp=blocklist&blocklisttype=all",
	})
	if err != nil || a.Status != http.StatusOK {
		return BlockLists{}, a, err
	}
	var doc struct {
		XMLName     xml.Name   `xml:"BlockList"`
		Committed   []xmlBlock `xml:"CommittedBlocks>Block"`
		Uncommitted []xmlBlock `xml:"UncommittedBlocks>Block"`
	}
	if err := xml.Unmarshal(a.Body, &doc); err != nil {
		return BlockLists{}, a, fmt.Errorf("rest: block list of %s: %w in %.200q", name, err, a.Body)
	}
	var out BlockLists
	if out.Committed, err = decodeBlocks(doc.Committed); err == nil {
		out.Uncommitted, err = decodeBlocks(doc.Uncommitted)
	}
	return out, a, err
}

// xmlBlock is an entry of a block list as it is sent.
type xmlBlock struct {
	Name string
	Size int64
}

func decodeBlocks(blocks []xmlBlock) ([]Block, error) {
	var out []Block
	for _, b := range blocks {
		id, err := base64.StdEncoding.DecodeString(b.Name)
		if err != nil {
			return nil, fmt.Errorf("rest: block id %q: %w", b.Name, err)
		}
		out = append(out, Block{ID: string(id), Size: b.Size})
	}
	return out, nil
}
