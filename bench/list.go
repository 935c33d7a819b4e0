package main

import (
	"bytes"
	"fmt"
	"html"
	"net/http"
	"net/url"
)

// listed are blobs that a listing has in the order of their numbers, those of all
// workers counted in turn: what a page must hold is then known from its number.
type listed struct {
	blobs
	workers int
}

func newListed(o Options, name string, size int) *listed {
	return &listed{blobs{name: name, size: size}, o.Concurrency}
}

func (l *listed) write(o object) *call { return l.put(o, l.path(o)) }

func (l *listed) read(o object) *call { return l.get(l.path(o)) }

func (l *listed) path(o object) string {
	return "/" + l.name + "/" + string(appendListedName(nil, o.n*l.workers+o.worker))
}

// appendListedName appends the name of a container's i-th blob. Names are in folders,
// as long as those of the other workloads.
func appendListedName(b []byte, i int) []byte {
	b = append(appendNumber(append(b, 'p'), i/scanItems, 6), '/')
	return appendNumber(b, i%scanItems, 8)
}

// list is the scan of a container by List Blobs, page after page by marker, and from
// the start again after the last.
type list struct {
	name string
	// page is the number of the next one of pages, and marker how the last answer
	// called it.
	page, pages int
	marker      string
	// found is how many names of the page the answers to it had so far.
	found int
	want  []byte
	// entries is how many a listing has in all; zero means that all pages are full.
	entries int
	// snapshots are listed too, each before its blob.
	snapshots bool
}

func (l *list) next() *call {
	most := scanItems - l.found
	c := &call{
		method: http.MethodGet, path: "/" + l.name, query: fmt.Sprintf("restype=container&comp=list&maxresults=%d", most),
		canonical: "\ncomp:list", status: http.StatusOK, blob: true,
	}
	if l.snapshots {
		c.query += "&include=snapshots"
		c.canonical += "\ninclude:snapshots"
	}
	if l.marker != "" {
		c.query += "&marker=" + url.QueryEscape(l.marker)
		c.canonical += "\nmarker:" + l.marker
	}
	c.canonical += fmt.Sprintf("\nmaxresults:%d\nrestype:container", most)
	return c
}

// check reports whether a page holds the names that it must, in order, and no other
// one, and has a marker unless it is the last. One that ends before them with a marker
// is continued. After a page that does not, the listing begins again.
func (l *list) check(a answer) (more bool, err error) {
	n, marker, err := l.checkNames(a.body)
	l.found += n
	short, last := l.found < l.items(), l.page+1 == l.pages
	switch {
	case err != nil:
	case short && marker != "":
		l.marker = marker
		return true, nil
	case short:
		err = fmt.Errorf("page %d: %d names of %d", l.page+1, l.found, l.items())
	case (marker == "") != last:
		err = fmt.Errorf("page %d of %d: next marker %q", l.page+1, l.pages, marker)
	}
	l.page, l.marker, l.found = l.page+1, marker, 0
	if err != nil || last {
		l.page, l.marker = 0, ""
	}
	return false, err
}

// items is how many names the page has.
func (l *list) items() int {
	if l.entries > 0 {
		return min(scanItems, l.entries-l.page*scanItems)
	}
	return scanItems
}

// checkNames returns how many of the names that come next in the page body has.
func (l *list) checkNames(body []byte) (n int, marker string, err error) {
	const mark = "<Name>"
	rest := body
	for i := l.found; i < l.items(); i++ {
		_, after, more := bytes.Cut(rest, []byte(mark))
		if !more {
			break
		}
		l.want = l.appendEntry(l.want[:0], l.page*scanItems+i)
		if !bytes.HasPrefix(after, l.want) {
			return 0, "", fmt.Errorf("page %d: %.30q in place of name %d", l.page+1, after, i)
		}
		rest = after
		n++
	}
	if bytes.Contains(rest, []byte(mark)) {
		return 0, "", fmt.Errorf("page %d: more than %d names", l.page+1, l.items())
	}
	_, rest, _ = bytes.Cut(rest, []byte("<NextMarker>"))
	text, _, _ := bytes.Cut(rest, []byte("<"))
	return n, html.UnescapeString(string(text)), nil
}

// appendEntry appends what the i-th entry of the listing begins with, from its name on.
func (l *list) appendEntry(b []byte, i int) []byte {
	if !l.snapshots {
		return append(appendListedName(b, i), '<')
	}
	group, at := i/(snapshotEvery+1), i%(snapshotEvery+1)
	if at == 0 {
		return append(appendListedName(b, group*snapshotEvery), "</Name><Snapshot>"...)
	}
	return append(appendListedName(b, group*snapshotEvery+at-1), "</Name><Properties>"...)
}
