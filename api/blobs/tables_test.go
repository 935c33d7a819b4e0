package blobs

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"hash/crc64"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// answerCase is one case of testdata/answers.txt.
type answerCase struct {
	name    string
	from    string // the oldest version it holds for
	before  []string
	request string
	body    string
	status  string
	headers []string
	// elements maps headers to the elements under Properties of the first entry.
	elements bool
}

// answerTables are the tables of testdata/answers.txt.
type answerTables struct {
	versions []string
	sets     map[string][]string
	cases    []answerCase
}

func readAnswerTables(t *testing.T) *answerTables {
	text, err := os.ReadFile("testdata/answers.txt")
	require.NoError(t, err)
	tables := &answerTables{sets: map[string][]string{}}
	var c answerCase
	end := func() {
		if c.request != "" {
			require.NotEmpty(t, c.status, c.name)
			tables.cases = append(tables.cases, c)
		}
		c = answerCase{}
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "", "#":
		case "versions":
			tables.versions = append(tables.versions, strings.Fields(rest)...)
		case "set":
			fields := strings.Fields(rest)
			tables.sets[fields[0]] = append(tables.sets[fields[0]], fields[1:]...)
		case "case":
			end()
			c.name = rest
		case "from":
			if c.request != "" {
				end()
			}
			c.from = rest
		case "before":
			c.before = append(c.before, rest)
		case "request":
			c.request = rest
		case "body":
			c.body = rest
		case "answer":
			fields := strings.Fields(rest)
			c.status, c.headers = fields[0], fields[1:]
		case "unbuilt":
			headers := []string{"ERROR"}
			if strings.HasPrefix(rest, http.MethodHead) {
				headers = []string{"STD", "x-ms-error-code"} // Never a body.
			}
			tables.cases = append(tables.cases, answerCase{name: "not built: " + rest, from: c.from, request: rest, status: "501", headers: headers})
		case "elements":
			fields := strings.Fields(rest)
			tables.cases = append(tables.cases, answerCase{
				name: line, request: "GET " + fields[0], status: "200", headers: fields[1:], elements: true,
			})
		default:
			require.Fail(t, "unknown line", line)
		}
	}
	end()
	return tables
}

// want returns the headers of an answer in a version: their values, empty for any.
func (a *answerTables) want(version string, tokens []string, expand func(string) string) map[string]string {
	out := map[string]string{}
	for _, token := range tokens {
		if set, named := a.sets[token]; named {
			maps.Copy(out, a.want(version, set, expand))
			continue
		}
		token, since, _ := strings.Cut(token, "@")
		token, before, ends := strings.Cut(token, "!")
		if version < since || ends && version >= before {
			continue
		}
		name, value, _ := strings.Cut(token, "=")
		out[strings.ToLower(name)] = expand(value)
	}
	return out
}

// The status and the headers of every answer that is built are those of the tables of
// protocol/blob.md, in each version: no other header, none missing.
func TestAnswersMatchTheTables(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Rehydration = time.Hour })
	tables := readAnswerTables(t)
	require.Greater(t, len(tables.cases), 70)
	require.Equal(t, http.StatusOK, r.do(http.MethodPut, "/cont?restype=container&comp=metadata", nil, "x-ms-meta-k", "v").status)
	names := 0
	for _, version := range tables.versions {
		put := r.put("/cont/b", []byte("hello"), "x-ms-meta-k", "v", "x-ms-blob-content-type", "text/x", "x-ms-blob-content-encoding", "e",
			"x-ms-blob-content-language", "de", "x-ms-blob-cache-control", "c", "x-ms-blob-content-disposition", "d")
		require.Equal(t, http.StatusCreated, put.status)
		for _, c := range tables.cases {
			if version < c.from {
				continue
			}
			names++
			hashed := c.body
			if hashed == "" {
				hashed = "hello"
			}
			crc := crc64.Checksum([]byte(hashed), crc64.MakeTable(0x9a6c9329ac4bc9b5))
			expand := func(text string) string {
				text = strings.NewReplacer("{n}", fmt.Sprintf("new-%d", names), "{md5}", url.PathEscape(md5Of([]byte(hashed))), "{version}", version,
					"{crc}", url.PathEscape(base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(nil, crc))),
					"{etag}", put.header.Get("ETag")).Replace(text)
				out, err := url.PathUnescape(text)
				require.NoError(t, err)
				return out
			}
			for _, request := range c.before {
				a := r.sendLine(request, c.body, testVersion, expand)
				require.Less(t, a.status, 300, "%s: %s: %s", c.name, request, a.body)
			}
			a := r.sendLine(c.request, c.body, version, expand)
			require.Equal(t, c.status, fmt.Sprint(a.status), "%s, version %s: %s", c.name, version, a.body)
			want := tables.want(version, c.headers, expand)
			got := a.headers()
			if c.elements {
				got = propertiesOf(t, a.body)
			}
			require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)), "%s, version %s", c.name, version)
			for name, value := range want {
				if value != "" {
					require.Equal(t, value, got[name], "%s, version %s: %s", c.name, version, name)
				}
			}
		}
	}
}

// headers are those of the message, by their names in lower case.
func (a answer) headers() map[string]string {
	out := map[string]string{}
	for name, values := range a.header {
		if name = strings.ToLower(name); name != "connection" {
			out[name] = strings.Join(values, ",")
		}
	}
	return out
}

// propertiesOf are the elements under the first Properties of a listing, by their names in
// lower case.
func propertiesOf(t *testing.T, listing []byte) map[string]string {
	var properties struct {
		Elements []struct {
			XMLName xml.Name
			Value   string `xml:",chardata"`
		} `xml:",any"`
	}
	_, rest, found := bytes.Cut(listing, []byte("<Properties>"))
	require.True(t, found, "%s", listing)
	require.NoError(t, xml.Unmarshal(append([]byte("<Properties>"), rest...), &properties))
	out := map[string]string{}
	for _, e := range properties.Elements {
		out[strings.ToLower(e.XMLName.Local)] = e.Value
	}
	return out
}

// sendLine sends a request as testdata/answers.txt writes it: verb, path, name=value headers.
func (r *rig) sendLine(line, body, version string, expand func(string) string) answer {
	r.t.Helper()
	fields := strings.Fields(line)
	header := []string{"x-ms-version", version, "x-ms-client-request-id", "client-1"}
	for _, field := range fields[2:] {
		name, value, _ := strings.Cut(field, "=")
		header = append(header, name, expand(value))
	}
	sent := []byte(strings.ReplaceAll(body, `\n`, "\r\n"))
	if fields[0] == http.MethodGet || fields[0] == http.MethodHead || fields[0] == http.MethodDelete || strings.Contains(line, "AppendBlob") {
		sent = nil
	}
	a, err := r.try(fields[0], strings.ReplaceAll(fields[1], "{n}", expand("{n}")), bytes.NewReader(sent), header...)
	require.NoError(r.t, err)
	return a
}
