package blobs

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/auth"
	"antipode/api/protocol"
	"antipode/geo"
)

// batchKey is the key of the account of a batchRig.
var batchKey = []byte("a key of sixteen bytes and more.")

// newBatchRig is newRig whose account has a key: parts of a batch are authorized, the batch is not.
func newBatchRig(t testing.TB, set func(*Options)) *rig {
	t.Helper()
	r := newRig(t, set)
	r.account.Key1 = batchKey
	return r
}

// sentPart is a part of a batch. Its path is that after the account, its headers are name, value pairs.
type sentPart struct {
	method, path string
	header       []string
	// key signs it; nil leaves it unsigned. unnamed: the path that is sent has no account.
	key     []byte
	unnamed bool
}

// deleting is a part that deletes a blob, signed.
func deleting(path string, header ...string) sentPart {
	return sentPart{method: http.MethodDelete, path: path, header: header, key: batchKey}
}

// text is the part as its client writes it, signed by protocol/auth.md 5 as a request of the batch's version.
func (p sentPart) text() string {
	target := "/acct" + p.path
	if p.unnamed {
		target = p.path
	}
	path, query, _ := strings.Cut(target, "?")
	of := map[string]string{"x-ms-date": time.Now().UTC().Format(http.TimeFormat)}
	for i := 0; i+1 < len(p.header); i += 2 {
		of[strings.ToLower(p.header[i])] = p.header[i+1]
	}
	sign := p.method + "\n\n\n\n\n" + of["content-type"] + "\n\n" + of["if-modified-since"] + "\n" + of["if-match"] + "\n" +
		of["if-none-match"] + "\n" + of["if-unmodified-since"] + "\n\n"
	var names, lines []string
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		lines = append(lines, name+": "+of[name])
		if strings.HasPrefix(name, "x-ms-") {
			sign += name + ":" + of[name] + "\n"
		}
	}
	sign += "/acct" + path
	params, _ := url.ParseQuery(query)
	names = names[:0]
	for name := range params {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		sign += "\n" + name + ":" + params.Get(name)
	}
	if p.key != nil {
		mac := hmac.New(sha256.New, p.key)
		_, _ = io.WriteString(mac, sign)
		lines = append(lines, "Authorization: SharedKey acct:"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return p.method + " " + target + " HTTP/1.1\r\n" + strings.Join(append(lines, "Content-Length: 0"), "\r\n") + "\r\n\r\n"
}

// bySAS adds a shared access signature to a part in place of a key. on is what it is for, and params says the rest.
func (p sentPart) bySAS(t *testing.T, on auth.Resource, params string) sentPart {
	t.Helper()
	values, err := url.ParseQuery("sv=2020-02-10&se=2999-01-01&" + params)
	require.NoError(t, err)
	if values.Get("si") != "" {
		values.Del("se")
	}
	signed, err := auth.SignSAS(protocol.Target{Service: geo.Blob, Account: "acct"}, on, values, batchKey)
	require.NoError(t, err)
	p.path, p.key = p.path+"?"+signed, nil
	return p
}

// bodyOf is the body of a batch with the boundary b.
func bodyOf(parts ...sentPart) string {
	var b strings.Builder
	for i, p := range parts {
		fmt.Fprintf(&b, "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: %d\r\n\r\n%s\r\n", i, p.text())
	}
	return b.String() + "--b--\r\n"
}

// gotPart is the answer to a part.
type gotPart struct {
	contentID string
	answer
}

// batch sends a batch and returns the answer to each part.
func (r *rig) batch(path, body string, header ...string) []gotPart {
	r.t.Helper()
	a := r.sendBatch(path, body, header...)
	require.Equal(r.t, http.StatusAccepted, a.status, "%s", a.body)
	require.NoError(r.t, a.err)
	return partsOf(r.t, a)
}

func (r *rig) sendBatch(path, body string, header ...string) answer {
	r.t.Helper()
	return r.do(http.MethodPost, path, []byte(body), append([]string{"Content-Type", "multipart/mixed; boundary=b"}, header...)...)
}

// partsOf reads the answer to a batch by the libraries of Go.
func partsOf(t testing.TB, a answer) (out []gotPart) {
	t.Helper()
	kind, params, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/mixed", kind)
	require.Equal(t, "batchresponse_"+a.header.Get("x-ms-request-id"), params["boundary"])
	in := multipart.NewReader(bytes.NewReader(a.body), params["boundary"])
	for {
		p, err := in.NextPart()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		require.Equal(t, "application/http", p.Header.Get("Content-Type"))
		text, err := io.ReadAll(p)
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(append(text, '\n'))), nil)
		require.NoError(t, err, "%s", text)
		got := gotPart{contentID: p.Header.Get("Content-ID"), answer: answer{status: resp.StatusCode, header: resp.Header}}
		got.body, got.err = io.ReadAll(resp.Body)
		require.NoError(t, got.err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, strconv.Itoa(len(got.body)), resp.Header.Get("Content-Length"))
		out = append(out, got)
	}
}

// said is the status and the code of each answer, in their order.
func said(t testing.TB, parts []gotPart) (out []string) {
	t.Helper()
	for _, p := range parts {
		out = append(out, strings.TrimSpace(fmt.Sprint(p.status, " ", p.code(t))))
	}
	return out
}
