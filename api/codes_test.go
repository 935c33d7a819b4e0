package api_test

import (
	"encoding/base64"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/accounts"
	"antipode/api/apitest"
	"antipode/api/auth"
	"antipode/api/blobs"
	"antipode/api/protocol"
	"antipode/api/queues"
	"antipode/api/tables"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/primary"
	"antipode/services/catalog"
	messages "antipode/services/queues"
)

// errorRow is a row of storageerr's table.
type errorRow struct {
	status  int
	code    string
	message string
}

// errorRows reads the table of error codes from its source, since Go cannot list variables.
func errorRows(t *testing.T) map[string]errorRow {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../services/storageerr/table.go", nil, 0)
	require.NoError(t, err)
	rows := map[string]errorRow{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		fields := spec.Values[0].(*ast.CompositeLit).Elts
		value := func(i int) string { return fields[i].(*ast.BasicLit).Value }
		status, err := strconv.Atoi(value(0))
		require.NoError(t, err)
		code, err := strconv.Unquote(value(1))
		require.NoError(t, err)
		message, err := strconv.Unquote(value(2))
		require.NoError(t, err)
		rows[spec.Names[0].Name] = errorRow{status, code, message}
		return false
	})
	require.Greater(t, len(rows), 80)
	return rows
}

// coded is a request and its headers, as name, value pairs. A header with the value "-" is
// removed; Authorization is set after the request was signed.
type coded struct {
	service geo.Service
	request string
	body    string
	headers []string
	// sas are the parameters of a shared access signature, in place of a key.
	sas string
}

// by is the request under a signature of today with these parameters besides.
func (c coded) by(sas string) coded {
	c.sas = "se=2999-01-01&" + sas
	return c
}

func table(request, body string, headers ...string) coded {
	return coded{service: geo.Table, request: request, body: body, headers: headers}
}

func queue(request, body string, headers ...string) coded {
	return coded{service: geo.Queue, request: request, body: body, headers: headers}
}

func blob(request, body string, headers ...string) coded {
	return coded{service: geo.Blob, request: request, body: body, headers: headers}
}

const (
	entityTo  = "/acct/tbl(PartitionKey='p',RowKey='r')"
	batchType = "multipart/mixed; boundary=b"
)

// Leases of the requests.
const (
	someLease  = "00000000-0000-4000-8000-00000000000a"
	otherLease = "00000000-0000-4000-8000-00000000000b"
)

// leasing is an action on the lease of a blob of cont.
func leasing(name, action string, headers ...string) coded {
	return blob("PUT /acct/cont/"+name+"?comp=lease", "", append([]string{"x-ms-lease-action", action}, headers...)...)
}

// copying copies a blob of cont to another one.
func copying(to, from string, headers ...string) coded {
	return blob("PUT /acct/cont/"+to, "", append([]string{"x-ms-copy-source", "http://localhost/acct/cont/" + from}, headers...)...)
}

// change is a batch of one change set, whose operations are these entities.
func change(keys ...string) string {
	out := "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"
	for _, key := range keys {
		p, r, _ := strings.Cut(key, "/")
		out += "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nPOST http://127.0.0.1/acct/tbl HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json\r\n\r\n" +
			fmt.Sprintf(`{"PartitionKey":"%s","RowKey":"%s"}`, p, r) + "\r\n"
	}
	return out + "--c--\r\n--b--\r\n"
}

// blobParts is a batch of blobs with these request lines, unsigned.
func blobParts(lines ...string) string {
	out := ""
	for _, line := range lines {
		out += "--b\r\nContent-Type: application/http\r\n\r\n" + line + " HTTP/1.1\r\n\r\n"
	}
	return out + "--b--\r\n"
}

func manyKeys(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprint("p/", i))
	}
	return keys
}

// codeRequests has a request for each row. The rows of a batch stand in its answer.
func codeRequests() map[string]coded {
	entity := func(properties string) coded {
		return table("POST /acct/tbl", `{"PartitionKey":"p","RowKey":"new"`+properties+`}`)
	}
	many := ""
	for i := range 300 {
		many += fmt.Sprintf(`,"n%d":1`, i)
	}
	big := ""
	for i := range 20 {
		big += fmt.Sprintf(`,"b%d":"%s"`, i, strings.Repeat("x", 32<<10))
	}
	list := func(inner string) string {
		return `<?xml version="1.0" encoding="utf-8"?><BlockList>` + inner + `</BlockList>`
	}
	policy := func(inner string) string {
		return "<SignedIdentifiers><SignedIdentifier>" + inner + "</SignedIdentifier></SignedIdentifiers>"
	}
	const blockBlob = "BlockBlob"
	batch := func(body string) coded { return table("POST /acct/$batch", body, "Content-Type", batchType) }
	return map[string]coded{
		"AccountNotFound":       blob("GET /nobody/c/b", ""),
		"AuthenticationFailed":  blob("GET /acct/cont/b", "", "Authorization", "SharedKey acct:"+base64.StdEncoding.EncodeToString(make([]byte, 32))),
		"InvalidAuthentication": blob("GET /acct/cont/b", "", "Authorization", "x"),
		"NoAuthentication":      blob("GET /acct/cont/b", "", "Authorization", "-"),
		"BearerRefused":         blob("GET /acct/cont/b", "", "Authorization", "Bearer x"),
		"ReadsDisabled":         blob("GET /hidden-secondary/cont/b", ""),
		"ReservedContainer":     blob("PUT /acct/$logs?restype=container", ""),
		"WriteOnSecondary":      blob("PUT /mirror-secondary/cont/b", "x", "x-ms-blob-type", blockBlob),

		"InvalidInput":           table("POST /acct/tbl", "{"),
		"OutOfRangeInput":        table("GET /acct/tbl(PartitionKey='%01',RowKey='r')", ""),
		"NameLengthOutOfRange":   blob("PUT /acct/c?restype=container", ""),
		"InvalidResourceName":    blob("PUT /acct/UPPER?restype=container", ""),
		"InvalidURI":             blob("GET /acct/cont/", ""),
		"NoCORSHeader":           blob("OPTIONS /acct/cont/b", ""),
		"CORSPreflightFailure":   blob("OPTIONS /acct/cont/b", "", "Origin", "http://x", "Access-Control-Request-Method", "GET"),
		"InvalidHeaderValue":     blob("PUT /acct/cont/b", "x", "x-ms-blob-type", "Blob"),
		"MissingRequiredHeader":  blob("PUT /acct/cont/b", "x"),
		"UnsupportedHeader":      blob("PUT /acct/cont/b", "x", "x-ms-blob-type", blockBlob, "x-ms-encryption-scope", "s"),
		"InvalidQueryParameter":  blob("GET /acct/cont/b?comp=none", ""),
		"MissingQueryParameter":  blob("PUT /acct/cont/b?comp=block", "x"),
		"InvalidXMLDocument":     blob("PUT /acct/cont/b?comp=blocklist", "<"),
		"OutOfRangeQueryParam":   blob("GET /acct/?comp=list&maxresults=0", ""),
		"MissingContentLength":   blob("PUT /acct/cont/b", "chunked", "x-ms-blob-type", blockBlob),
		"RequestBodyTooLarge":    blob("DELETE /acct/cont/b", strings.Repeat("x", 65<<10)),
		"InvalidHTTPVerb":        blob("BREW /acct/cont/b", ""),
		"UnsupportedHTTPVerb":    blob("POST /acct/cont/b", ""),
		"NotImplemented":         blob("GET /acct/cont/b?comp=pagelist", ""),
		"ConditionNotMet":        blob("PUT /acct/cont/there", "x", "x-ms-blob-type", blockBlob, "If-Match", `"0x1"`),
		"NotModified":            blob("GET /acct/cont/there", "", "If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT"),
		"MultipleConditions":     blob("PUT /acct/cont/b", "x", "x-ms-blob-type", blockBlob, "If-Match", `"a"`, "If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT"),
		"UnsatisfiableCondition": blob("GET /acct/cont/there", "", "If-None-Match", "*"),
		"InvalidMD5":             blob("PUT /acct/cont/b", "x", "x-ms-blob-type", blockBlob, "Content-MD5", "x"),
		"MD5Mismatch":            blob("PUT /acct/cont/b", "x", "x-ms-blob-type", blockBlob, "Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
		"CRC64Mismatch":          blob("PUT /acct/cont/b", "x", "x-ms-blob-type", blockBlob, "x-ms-content-crc64", "AAAAAAAAAAA="),
		"BothCRC64AndMD5":        blob("PUT /acct/cont/b", "x", "x-ms-blob-type", blockBlob, "x-ms-content-crc64", "AAAAAAAAAAA=", "Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
		"InvalidMetadata":        blob("PUT /acct/cont/b", "x", "x-ms-blob-type", blockBlob, "x-ms-meta-a-b", "x"),
		"EmptyMetadataKey":       blob("PUT /acct/cont/b", "x", "x-ms-blob-type", blockBlob, "x-ms-meta-", "x"),
		"MetadataTooLarge":       blob("PUT /acct/cont/b", "x", "x-ms-blob-type", blockBlob, "x-ms-meta-a", strings.Repeat("x", 9<<10)),

		"TableAlreadyExists":    table("POST /acct/Tables", `{"TableName":"tbl"}`),
		"TableBeingDeleted":     table("POST /acct/Tables", `{"TableName":"gone"}`),
		"TableNotFound":         table("POST /acct/none", `{"PartitionKey":"p","RowKey":"r"}`),
		"ResourceNotFound":      table("GET /acct/tbl(PartitionKey='p',RowKey='none')", ""),
		"EntityAlreadyExists":   table("POST /acct/tbl", `{"PartitionKey":"p","RowKey":"r"}`),
		"UpdateConditionNotMet": table("PUT "+entityTo, "{}", "If-Match", `W/"datetime'2020-01-01T00%3A00%3A00Z'"`),
		"PropertiesNeedValue":   table("POST /acct/tbl", `{"PartitionKey":"p"}`),
		"TooManyProperties":     entity(many),
		"PropertyNameInvalid":   entity(`,"a b":1`),
		"PropertyNameTooLong":   entity(`,"` + strings.Repeat("n", 256) + `":1`),
		"PropertyValueTooLarge": entity(`,"s":"` + strings.Repeat("x", 33<<10) + `"`),
		"EntityTooLarge":        entity(big),
		"DuplicateProperties":   entity(`,"a":1,"a":2`),
		"QuerySyntax":           table("GET /acct/tbl(x)", ""),
		"TableMethodNotAllowed": table("DELETE /acct/tbl", ""),
		"AtomNotSupported":      table("GET /acct/tbl", "", "Accept", "application/atom+xml"),
		"JSONVerboseNotSupport": table("GET /acct/tbl", "", "Accept", "application/json;odata=verbose"),
		"JSONNotSupported":      table("POST /acct/tbl", `{"PartitionKey":"p","RowKey":"s"}`, "x-ms-version", "2012-02-12"),
		"NotAuthorized":         queue("GET /acct/que?comp=acl", "").by("sv=2020-02-10&ss=q&srt=sco&sp=rwdlacup"),
		"PermissionMismatch":    queue("GET /acct/que/messages?peekonly=true", "").by("sv=2020-02-10&sp=aup"),
		"ResourceTypeMismatch":  queue("GET /acct/?comp=list", "").by("sv=2020-02-10&ss=q&srt=co&sp=rwdlacup"),
		"ServiceMismatch":       queue("GET /acct/?comp=list", "").by("sv=2020-02-10&ss=bt&srt=sco&sp=rwdlacup"),
		"SourceIPMismatch":      queue("GET /acct/que/messages?peekonly=true", "").by("sv=2020-02-10&sp=r&sip=10.0.0.1"),
		"ProtocolMismatch":      queue("GET /acct/que/messages?peekonly=true", "").by("sv=2020-02-10&sp=r&spr=https"),
		"MediaTypeNotSupported": table("GET /acct/tbl", "", "Accept", "image/png"),
		"BatchTooLong":          batch(change(manyKeys(101)...)),
		"BatchPartitionsDiffer": batch(change("p/1", "q/1")),
		"BatchPartsExceeded":    blob("POST /acct/?comp=batch", blobParts(slices.Repeat([]string{"DELETE /acct/cont/none"}, 257)...), "Content-Type", batchType),
		"MixedBatch":            blob("POST /acct/?comp=batch", blobParts("DELETE /acct/cont/none", "PUT /acct/cont/none?comp=tier"), "Content-Type", batchType),
		"BatchRowTwice":         batch(change("p/1", "p/1")),
		"XMethodNotUsingPost":   table("GET /acct/tbl", "", "X-HTTP-Method", "MERGE"),
		"XMethodIncorrectValue": table("POST /acct/tbl", "{}", "X-HTTP-Method", "GET"),
		"XMethodIncorrectCount": table("POST /acct/tbl", "{}", "X-HTTP-Method", "MERGE", "X-HTTP-Method", "MERGE"),

		"ContainerAlreadyExists":     blob("PUT /acct/cont?restype=container", ""),
		"ContainerNotFound":          blob("GET /acct/none/b", ""),
		"ContainerBeingDeleted":      blob("PUT /acct/gone?restype=container", ""),
		"BlobAlreadyExists":          blob("PUT /acct/cont/there", "x", "x-ms-blob-type", blockBlob, "If-None-Match", "*"),
		"UnauthorizedBlobOverwrite":  blob("PUT /acct/cont/there", "x", "x-ms-blob-type", blockBlob).by("sv=2020-02-10&sr=c&sp=c"),
		"BlobNotFound":               blob("GET /acct/cont/none", ""),
		"InvalidRange":               blob("GET /acct/cont/there", "", "x-ms-range", "bytes=9-"),
		"InvalidBlobOrBlock":         blob("PUT /acct/cont/blocks?comp=block&blockid=AAAA", "x"),
		"InvalidBlockList":           blob("PUT /acct/cont/there?comp=blocklist", list("<Latest>AAAA</Latest>")),
		"BlockListTooLong":           blob("PUT /acct/cont/there?comp=blocklist", list(strings.Repeat("<Latest>AA==</Latest>", 50001))),
		"LeaseNotPresentOnBlob":      blob("GET /acct/cont/there", "", "x-ms-lease-id", "00000000-0000-4000-8000-000000000001"),
		"LeaseNotPresentOnContainer": blob("GET /acct/cont?restype=container", "", "x-ms-lease-id", "00000000-0000-4000-8000-000000000001"),

		"BlobArchived":         blob("GET /acct/cont/archived", ""),
		"BlobBeingRehydrated":  blob("GET /acct/cont/thawing", ""),
		"TagsTooLarge":         blob("PUT /acct/cont/b", "x", "x-ms-blob-type", blockBlob, "x-ms-tags", "a="+strings.Repeat("b", 257)),
		"EmptyTagName":         blob("PUT /acct/cont/b", "x", "x-ms-blob-type", blockBlob, "x-ms-tags", "=b"),
		"DuplicateTagNames":    blob("PUT /acct/cont/b", "x", "x-ms-blob-type", blockBlob, "x-ms-tags", "a=b&a=c"),
		"InvalidTag":           blob("PUT /acct/cont/b", "x", "x-ms-blob-type", blockBlob, "x-ms-tags", "a"),
		"InvalidBlobType":      blob("PUT /acct/cont/there?comp=appendblock", "x"),
		"BlobIsSealed":         blob("PUT /acct/cont/sealed?comp=appendblock", "x"),
		"AppendPositionNotMet": blob("PUT /acct/cont/log?comp=appendblock", "x", "x-ms-blob-condition-appendpos", "1"),
		"MaxBlobSizeNotMet":    blob("PUT /acct/cont/log?comp=appendblock", "x", "x-ms-blob-condition-maxsize", "0"),
		"AppendBlobTooNew":     blob("GET /acct/cont/log", "", "x-ms-version", "2014-02-14"),

		"LeaseMismatchOnBlob":                blob("DELETE /acct/cont/leased", "", "x-ms-lease-id", otherLease),
		"LeaseMismatchOnContainer":           blob("DELETE /acct/leased?restype=container", "", "x-ms-lease-id", otherLease),
		"LeaseIDMissing":                     blob("DELETE /acct/cont/leased", ""),
		"SnapshotsPresent":                   blob("DELETE /acct/cont/kept", ""),
		"LeaseAlreadyPresent":                leasing("leased", "acquire", "x-ms-lease-duration", "-1"),
		"LeaseIDMismatchWithLease":           leasing("leased", "renew", "x-ms-lease-id", otherLease),
		"LeaseNotPresentWithLease":           leasing("there", "break"),
		"LeaseIsBreakingAndCannotBeAcquired": leasing("breaking", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", someLease),
		"LeaseIsBreakingAndCannotBeChanged":  leasing("breaking", "change", "x-ms-lease-id", someLease, "x-ms-proposed-lease-id", otherLease),
		"LeaseIsBrokenAndCannotBeRenewed":    leasing("breaking", "renew", "x-ms-lease-id", someLease),

		"QueueAlreadyExists":       queue("PUT /acct/que", "", "x-ms-meta-a", "1"),
		"QueueBeingDeleted":        queue("PUT /acct/gone", ""),
		"QueueNotFound":            queue("GET /acct/none?comp=metadata", ""),
		"MessageTooLarge":          queue("POST /acct/que/messages", strings.Repeat("x", 513<<10), "x-ms-version", "2009-09-19"),
		"InvalidXMLNodeValue":      queue("PUT /acct/que?comp=acl", policy("<Id>a</Id><AccessPolicy><Permission>x</Permission></AccessPolicy>")),
		"MissingXMLNode":           queue("PUT /acct/que?comp=acl", policy("")),
		"PublicAccessNotPermitted": blob("PUT /acct/public?restype=container", "", "x-ms-blob-public-access", "blob"),
		"SourceConditionNotMet":    copying("b", "there", "x-ms-source-if-match", `"0x1"`),
		"TargetConditionNotMet":    copying("there", "there", "If-Match", `"0x1"`),
		"NoPendingCopyOperation":   blob("PUT /acct/cont/there?comp=copy&copyid="+someLease, "", "x-ms-copy-action", "abort"),
		"InvalidSourceBlobType":    copying("b", "log", "x-ms-requires-sync", "true"),
		"BothTagsAndSourceTags":    copying("b", "there", "x-ms-requires-sync", "true", "x-ms-copy-source-tag-option", "COPY", "x-ms-tags", "a=b"),

		"CopyAcrossAccountsNotSupported": blob("PUT /acct/cont/b", "", "x-ms-copy-source", "/mirror/cont/b", "x-ms-version", "2011-08-18"),

		"ConditionsNotSupported": blob("DELETE /acct/cont?restype=container", "", "If-Match", "*"),
	}
}

// unreached are the rows that no request of a client gets by itself, with the reason.
var unreached = map[string]string{
	"OperationInProgress":       "an answer of the admin port: TestClusterErrors",
	"AccountAlreadyExists":      "an answer of the admin port: TestClusterErrors",
	"NoHostInformation":         "HTTP/1.0 without Host alone, since net/http refuses HTTP/1.1: TestParseTarget",
	"InternalError":             "a bug: TestPanicIsLoggedWithItsStack",
	"OperationTimedOut":         "a range or a client that stalls: TestAnnouncedBodyIsAnswered",
	"ServerBusy":                "a range without a leader: TestNoLeader",
	"BlobOverwritten":           "another write between two reads of one download: services/blobs",
	"BlockCountExceedsLimit":    "100,000 staged blocks: services/blobs",
	"AppendedBlocksExceedLimit": "50,000 appends: services/blobs",
	"BatchEffectTooLarge":       "100 merges into entities of 1 MB: services/tables",
	"CannotVerifyCopySource":    "another server that is not reached: TestOutsideSources",
	"LeaseLost":                 "a lease that has run out, after 15 s at least: services/lease",
	"MessageNotFound":           "needs a receipt of the queue: TestLife in api/queues",
	"PopReceiptMismatch":        "needs a receipt of another message: TestRefusalsOfMessages in api/queues",
}

// codesRig is a location with account acct, the secondary of mirror.
func codesRig(t *testing.T) map[geo.Service]string {
	t.Helper()
	stamp := apitest.NewStamp(t, vfs.NewCrashableMem(), "acct", geo.Catalog, geo.Table, geo.Blob, geo.Queue)
	names, writer := &catalog.Containers{}, primary.New(stamp)
	f := newFrontEnd(t, api.Options{
		Location: "north", Directory: directory{"acct": "north", "mirror": "south", "hidden": "hidden"},
		Accounts: &accounts.Handler{Stamp: stamp, Writer: writer},
		Tables: &tables.Handler{
			Stamp: stamp, Writer: writer, NameRest: time.Hour, Names: names,
			InFlight: protocol.NewInFlight(tables.InFlightBytesMax), Answers: protocol.NewInFlight(tables.AnswersBytesMax),
		},
		Blobs: blobs.NewHandler(blobs.Options{
			Stamp: stamp, Writer: writer, Payload: stamp, Names: names, NameRest: time.Hour, Logger: apitest.Quiet(), Rehydration: time.Hour,
		}),
		Queues: queues.NewHandler(queues.Options{
			Stamp: stamp, Writer: writer, Names: names, NameRest: time.Hour,
			Messages: messages.New(messages.Options{Stamp: stamp, Writer: writer, Clock: clock.System{}}),
		}),
	})
	urls := map[geo.Service]string{}
	for _, s := range []geo.Service{geo.Table, geo.Blob, geo.Queue} {
		l := httptest.NewServer(f.Handler(s))
		t.Cleanup(l.Close)
		urls[s] = l.URL
	}
	for _, c := range []coded{
		table("POST /acct/Tables", `{"TableName":"tbl"}`), table("POST /acct/tbl", `{"PartitionKey":"p","RowKey":"r"}`),
		table("POST /acct/Tables", `{"TableName":"gone"}`), table("DELETE /acct/Tables('gone')", ""),
		blob("PUT /acct/cont?restype=container", ""), blob("PUT /acct/gone?restype=container", ""), blob("DELETE /acct/gone?restype=container", ""),
		blob("PUT /acct/cont/there", "x", "x-ms-blob-type", "BlockBlob"), blob("PUT /acct/cont/blocks?comp=block&blockid=AA==", "x"),
		blob("PUT /acct/cont/leased", "x", "x-ms-blob-type", "BlockBlob"), blob("PUT /acct/cont/breaking", "x", "x-ms-blob-type", "BlockBlob"),
		blob("PUT /acct/cont/log", "", "x-ms-blob-type", "AppendBlob"), blob("PUT /acct/cont/sealed", "", "x-ms-blob-type", "AppendBlob"),
		blob("PUT /acct/cont/sealed?comp=seal", ""),
		blob("PUT /acct/leased?restype=container", ""),
		blob("PUT /acct/leased?restype=container&comp=lease", "", "x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1"),
		leasing("leased", "acquire", "x-ms-lease-duration", "-1"),
		blob("PUT /acct/cont/kept", "x", "x-ms-blob-type", "BlockBlob"), blob("PUT /acct/cont/kept?comp=snapshot", ""),
		blob("PUT /acct/cont/archived", "x", "x-ms-blob-type", "BlockBlob", "x-ms-access-tier", "Archive"),
		blob("PUT /acct/cont/thawing", "x", "x-ms-blob-type", "BlockBlob", "x-ms-access-tier", "Archive"),
		blob("PUT /acct/cont/thawing?comp=tier", "", "x-ms-access-tier", "Hot"),
		leasing("breaking", "acquire", "x-ms-lease-duration", "60", "x-ms-proposed-lease-id", someLease), leasing("breaking", "break"),
		queue("PUT /acct/que", ""), queue("PUT /acct/gone", ""), queue("DELETE /acct/gone", ""),
	} {
		a := c.send(t, urls)
		require.Less(t, a.status, 300, "%s: %s", c.request, a.body)
	}
	return urls
}

func (c coded) send(t *testing.T, urls map[geo.Service]string) answer {
	t.Helper()
	return send(t, c.signed(t, urls))
}

func (c coded) signed(t *testing.T, urls map[geo.Service]string) *http.Request {
	t.Helper()
	method, target, _ := strings.Cut(c.request, " ")
	var body io.Reader = strings.NewReader(c.body)
	if c.body == "chunked" {
		body = io.MultiReader(body) // Of unknown length.
	}
	r, err := http.NewRequestWithContext(t.Context(), method, urls[c.service]+target, body)
	require.NoError(t, err)
	r.Header.Set("x-ms-version", "2021-12-02")
	if c.service == geo.Table {
		r.Header.Set("Accept", "application/json")
		r.Header.Set("Content-Type", "application/json")
		if method == http.MethodDelete {
			r.Header.Set("If-Match", "*")
		}
	}
	authorization := ""
	for i := 0; i+1 < len(c.headers); i += 2 {
		name, value := c.headers[i], c.headers[i+1]
		switch name {
		case "Authorization":
			authorization = value
		case "X-HTTP-Method":
			r.Header.Add(name, value)
		default:
			r.Header.Set(name, value)
		}
	}
	account, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	name, _ := geo.SplitSecondary(account)
	if c.sas != "" {
		c.signSAS(t, r, name)
		return r
	}
	require.NoError(t, auth.Sign(r, c.service, name, key, clock.System{}.Now()))
	switch authorization {
	case "":
	case "-":
		r.Header.Del("Authorization")
	default:
		r.Header.Set("Authorization", authorization)
	}
	return r
}

// signSAS adds a shared access signature to the request's query.
func (c coded) signSAS(t *testing.T, r *http.Request, account geo.Account) {
	t.Helper()
	params, err := url.ParseQuery(c.sas)
	require.NoError(t, err)
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	container, object, _ := strings.Cut(path, "/")
	container, _, _ = strings.Cut(container, "(")
	on := auth.Resource{Container: container, Blob: object}
	signed, err := auth.SignSAS(protocol.Target{Service: c.service, Account: account}, on, params, key)
	require.NoError(t, err)
	r.URL.RawQuery = strings.TrimPrefix(r.URL.RawQuery+"&"+signed, "&")
}

// Every error of the table reaches a client: by the request that stands beside it, with its
// status, code and message, or the reason why no request does is written down.
func TestEveryCodeIsReached(t *testing.T) {
	t.Parallel()
	rows, requests := errorRows(t), codeRequests()
	for name := range requests {
		require.Contains(t, rows, name)
		require.NotContains(t, unreached, name)
	}
	for name := range unreached {
		require.Contains(t, rows, name)
	}
	urls := codesRig(t)
	for name, row := range rows {
		c, has := requests[name]
		if !has {
			require.NotEmpty(t, unreached[name], "%s has no request", name)
			continue
		}
		a := c.send(t, urls)
		if strings.HasPrefix(name, "Batch") { // In the answer of the batch.
			if a.status != http.StatusAccepted || !strings.Contains(a.body, row.code) || !strings.Contains(a.body, fmt.Sprint("HTTP/1.1 ", row.status)) {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
			continue
		}
		if a.status != row.status || a.code != row.code {
			t.Errorf("%s: %d %s: %s", name, a.status, a.code, a.body)
		} else if a.body != "" && name != "AuthenticationFailed" && !strings.Contains(strings.ReplaceAll(a.body, "&#39;", "'"), row.message) {
			t.Errorf("%s: %s", name, a.body)
		}
	}
}
