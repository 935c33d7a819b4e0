package api_test

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/auth"
	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/routing"
	"antipode/geo"
	"antipode/internal/clock"
)

const (
	// ofTable and ofQueue are signatures of today, without letters.
	ofTable     = "sv=2019-02-02&tn=tbl&sp="
	ofContainer = "sv=2024-08-04&sr=c&sp="
	ofQueue     = "sv=2020-02-10&sp="
	blockBlobs  = "BlockBlob"
)

// row is an entity as Insert takes it.
func row(pk, rk string) string { return fmt.Sprintf(`{"PartitionKey":"%s","RowKey":"%s"}`, pk, rk) }

// policies is a document of policies: an id, an expiry and letters each.
func policies(list ...string) string {
	out := "<SignedIdentifiers>"
	for _, p := range list {
		f := strings.Fields(p)
		out += "<SignedIdentifier><Id>" + f[0] + "</Id><AccessPolicy><Expiry>" + f[1] + "</Expiry><Permission>" + f[2] +
			"</Permission></AccessPolicy></SignedIdentifier>"
	}
	return out + "</SignedIdentifiers>"
}

// want sends a request and requires its status and code; empty where it succeeds.
func (rig *resolveRig) want(t *testing.T, c coded, status int, code string) answer {
	t.Helper()
	a := c.send(t, rig.urls)
	require.Equal(t, status, a.status, "%s by %s: %s", c.request, c.sas, a.body)
	require.Equal(t, code, a.code, "%s by %s", c.request, c.sas)
	return a
}

// The cases 77 to 82 of protocol/table.md, Appendix A.
//
// Capability: Clients: Shared access signatures.
func TestConformanceOfAccess(t *testing.T) {
	t.Parallel()
	rig := newResolveRig(t)
	for _, pk := range []string{"a", "b", "it's"} {
		rig.want(t, table("POST /acct/tbl", row(pk, "r")), 201, "")
	}
	t.Run("77 SharedKey and Lite on an ACL, a quote and path style", func(t *testing.T) {
		for name, sign := range map[string]func(*http.Request, geo.Service, geo.Account, []byte, time.Time) error{
			"SharedKey": auth.Sign, "SharedKeyLite": auth.SignSharedKeyLite,
		} {
			for _, target := range []string{"/acct/tbl?comp=acl", "/acct/tbl(PartitionKey='it%27%27s',RowKey='r')"} {
				for i := -1; i < len("/acct/tbl"); i++ {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, rig.urls[geo.Table]+target, nil)
					require.NoError(t, err)
					r.Header.Set("x-ms-version", "2019-02-02")
					r.Header.Set("Accept", "application/json")
					require.NoError(t, sign(r, geo.Table, "acct", key, clock.System{}.Now()))
					if i < 0 {
						require.Equal(t, 200, send(t, r).status, "%s %s", name, target)
						continue
					}
					changed := []byte(target)
					changed[i]++
					r.URL.Opaque, r.URL.RawQuery, _ = strings.Cut(string(changed), "?")
					a := send(t, r)
					require.Contains(t, []int{403, 400}, a.status, "%s %s", name, changed)
					require.True(t, a.status == 403 || i == 0 || i == 5, "%s %s: only without its slashes it is no path", name, changed)
				}
			}
		}
	})
	t.Run("78 date 16 minutes old", func(t *testing.T) {
		r := signed(t, http.MethodGet, rig.urls[geo.Table]+"/acct/tbl()", nil, "Accept", "application/json")
		r.Header.Set("x-ms-date", clock.System{}.Now().Add(-16*time.Minute).UTC().Format(http.TimeFormat))
		require.NoError(t, auth.Sign(r, geo.Table, "acct", key, clock.System{}.Now()))
		a := send(t, r)
		require.Equal(t, 403, a.status)
		require.Equal(t, "AuthenticationFailed", a.code)
	})
	t.Run("79 key range", func(t *testing.T) {
		a := rig.want(t, table("GET /acct/tbl()", "").by(ofTable+"r&spk=a&epk=a"), 200, "")
		require.Equal(t, []string{"a/r"}, keysIn(a.body))
		rig.want(t, table("GET /acct/tbl(PartitionKey='b',RowKey='r')", "").by(ofTable+"r&spk=a&epk=a"), 404, "ResourceNotFound")
		rig.want(t, table("POST /acct/tbl", row("b", "new")).by(ofTable+"a&spk=a&epk=a"), 403, "AuthorizationFailure")
		rig.want(t, table("POST /acct/tbl", row("a", "new")).by(ofTable+"a&spk=a&epk=a"), 201, "")
	})
	t.Run("80 upsert with a alone", func(t *testing.T) {
		put := table("PUT /acct/tbl(PartitionKey='a',RowKey='u')", "{}")
		rig.want(t, put.by(ofTable+"a"), 403, "AuthorizationPermissionMismatch")
		rig.want(t, put.by(ofTable+"au"), 204, "")
	})
	t.Run("81 resources by version", func(t *testing.T) {
		rig.want(t, table("POST /acct/Tables", `{"TableName":"Blogs"}`), 201, "")
		for sv, resource := range map[string]string{"2014-02-14": "/acct/blogs", "2019-02-02": "/table/acct/blogs"} {
			sas := "sv=" + sv + "&tn=Blogs&sp=r"
			rig.want(t, table("GET /acct/Blogs()", "", "x-ms-version", "2019-02-02").by(sas), 200, "")
			wrong := table("GET /acct/Blogs()", "").by(sas).signed(t, rig.urls)
			wrong.URL.RawQuery = strings.Replace(wrong.URL.RawQuery, "sp=r", "sp=ra", 1)
			require.Equal(t, 403, send(t, wrong).status)
			q, err := protocol.ParseQuery("se=2999-01-01&" + sas)
			require.NoError(t, err)
			_, err = (&auth.Verifier{}).VerifySAS(
				protocol.Target{Service: geo.Table, Account: "acct"}, auth.Resource{Container: "Blogs"}, q, auth.Keys{Key1: key})
			e, _ := protocol.ErrorOf(err)
			require.Contains(t, e.Details[0].Value, "\n"+resource+"\n")
		}
	})
	t.Run("82 five policies and six", func(t *testing.T) {
		five := []string{"1 2999-01-01 r", "2 2999-01-01 a", "3 2999-01-01 u", "4 2999-01-01 d", "5 2999-01-01 raud"}
		rig.want(t, table("PUT /acct/tbl?comp=acl", policies(five...)), 204, "")
		a := rig.want(t, table("GET /acct/tbl?comp=acl", ""), 200, "")
		require.True(t, strings.HasPrefix(a.body, "\xef\xbb\xbf<?xml"), "a byte order mark")
		require.Equal(t, 5, strings.Count(a.body, "<Expiry>2999-01-01T00:00:00.0000000Z</Expiry>"))
		rig.want(t, table("PUT /acct/tbl?comp=acl", policies(append(five, "6 2999-01-01 r")...)), 400, "InvalidXmlDocument")
		require.Equal(t, a.body, rig.want(t, table("GET /acct/tbl?comp=acl", ""), 200, "").body)
	})
}

// keysIn are the keys of the entities in the answer to a query, as PartitionKey/RowKey.
func keysIn(body string) []string {
	out := []string{}
	for part := range strings.SplitSeq(body, `"PartitionKey":"`) {
		if pk, rest, found := strings.Cut(part, `","RowKey":"`); found {
			rk, _, _ := strings.Cut(rest, `"`)
			out = append(out, pk+"/"+rk)
		}
	}
	return out
}

// A range of keys has its ends within, whatever the filter, the token and the page say, and a batch is asked for each of
// its requests.
//
// Capability: Clients: Shared access signatures.
func TestKeyRangeOfSAS(t *testing.T) {
	t.Parallel()
	rig := newResolveRig(t)
	for _, pk := range []string{"a", "b", "c"} {
		for _, rk := range []string{"1", "2", "3"} {
			rig.want(t, table("POST /acct/tbl", row(pk, rk)), 201, "")
		}
	}
	for _, c := range []struct{ sas, query, want string }{
		{"", "", "a/1 a/2 a/3 b/1 b/2 b/3 c/1 c/2 c/3 p/r"},
		{"&spk=b", "", "b/1 b/2 b/3 c/1 c/2 c/3 p/r"},
		{"&spk=b&srk=2", "", "b/2 b/3 c/1 c/2 c/3 p/r"},
		{"&epk=b", "", "a/1 a/2 a/3 b/1 b/2 b/3"},
		{"&epk=b&erk=2", "", "a/1 a/2 a/3 b/1 b/2"},
		{"&spk=b&srk=2&epk=b&erk=2", "", "b/2"},
		{"&spk=b&epk=a", "", ""},
		{"&spk=x", "", ""},
		{"&spk=b&epk=b", "?$filter=PartitionKey%20ge%20'a'", "b/1 b/2 b/3"},
		{"&spk=b&epk=b", "?$filter=RowKey%20eq%20'3'", "b/3"},
		{"&spk=b&epk=b", "?$filter=PartitionKey%20eq%20'c'", ""},
		{"&spk=b&epk=b", "?$filter=PartitionKey%20lt%20'b'", ""},
		{"&spk=b&epk=b", "?NextPartitionKey=1!4!YQ--", "b/1 b/2 b/3"},
		{"&spk=b&epk=b", "?NextPartitionKey=1!4!Yg--&NextRowKey=1!4!Mw--", "b/3"},
		{"&spk=b&epk=b", "?NextPartitionKey=1!4!Yw--", ""},
	} {
		a := rig.want(t, table("GET /acct/tbl()"+c.query, "").by(ofTable+"r"+c.sas), 200, "")
		require.Equal(t, c.want, strings.Join(keysIn(a.body), " "), "%+v", c)
		require.Empty(t, a.header.Get("x-ms-continuation-NextPartitionKey"), "%+v", c)
	}
	page := rig.want(t, table("GET /acct/tbl()?$top=2", "").by(ofTable+"r&spk=b&epk=b"), 200, "")
	next := "&NextPartitionKey=" + page.header.Get("x-ms-continuation-NextPartitionKey") + "&NextRowKey=" + page.header.Get("x-ms-continuation-NextRowKey")
	last := rig.want(t, table("GET /acct/tbl()?$top=2"+next, "").by(ofTable+"r&spk=b&epk=b"), 200, "")
	require.Equal(t, []string{"b/3"}, keysIn(last.body))
	require.Empty(t, last.header.Get("x-ms-continuation-NextPartitionKey"))

	entity := func(pk string) string { return "/acct/tbl(PartitionKey='" + pk + "',RowKey='1')" }
	const ranged = "&spk=b&epk=b"
	rig.want(t, table("GET "+entity("b"), "").by(ofTable+"r"+ranged), 200, "")
	for _, verb := range []string{"PUT", "MERGE", "DELETE"} {
		c := table(verb+" "+entity("c"), "{}", "If-Match", "*").by(ofTable + "raud" + ranged)
		rig.want(t, c, 403, "AuthorizationFailure")
		c = table(verb+" "+entity("b"), "{}", "If-Match", "*").by(ofTable + "raud" + ranged)
		rig.want(t, c, 204, "")
		if verb == "DELETE" {
			continue
		}
		// An update without a condition inserts, too, and needs the permission; an If-Match that is no condition is none.
		for _, match := range []string{"", " ", "null"} {
			c = table(verb+" "+entity("b"), "{}", "If-Match", match)
			rig.want(t, c.by(ofTable+"ud"+ranged), 403, "AuthorizationPermissionMismatch")
			rig.want(t, c.by(ofTable+"aud"+ranged), 204, "")
			in := table("POST /acct/$batch", "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\n"+verb+" "+entity("b")+
				" HTTP/1.1\r\nContent-Type: application/json\r\nIf-Match: "+match+"\r\n\r\n{}\r\n--c--\r\n--b--", "Content-Type", batchType)
			rig.want(t, in.by(ofTable+"ud"+ranged), 403, "AuthorizationPermissionMismatch")
			require.Contains(t, rig.want(t, in.by(ofTable+"aud"+ranged), 202, "").body, "204 No Content")
		}
	}

	batch := func(sas string, keys ...string) coded {
		return table("POST /acct/$batch", change(keys...), "Content-Type", batchType).by(sas)
	}
	require.Contains(t, rig.want(t, batch(ofTable+"a"+ranged, "b/8", "b/9"), 202, "").body, "201 Created")
	rig.want(t, batch(ofTable+"rud", "b/10"), 403, "AuthorizationPermissionMismatch")
	rig.want(t, batch(ofTable+"a"+ranged, "c/8", "c/9"), 403, "AuthorizationFailure")
	rig.want(t, batch("sv=2019-02-02&tn=other&sp=a", "b/10"), 403, "AuthenticationFailed")
	const every = "sv=2019-02-02&ss=t&sp=a&srt="
	rig.want(t, batch(every+"c", "b/10"), 403, "AuthorizationResourceTypeMismatch")
	require.Contains(t, rig.want(t, batch(every+"o", "b/10"), 202, "").body, "201 Created")
	single := func(verb, target string) coded {
		body := "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" + verb +
			" http://127.0.0.1/acct/" + target + " HTTP/1.1\r\nAccept: application/json\r\n\r\n\r\n--b--\r\n"
		return table("POST /acct/$batch", body, "Content-Type", batchType)
	}
	require.Contains(t, rig.want(t, single("GET", "tbl(PartitionKey='c',RowKey='2')").by(ofTable+"r"), 202, "").body, "200 OK")
	a := rig.want(t, single("GET", "tbl(PartitionKey='c',RowKey='2')").by(ofTable+"r"+ranged), 202, "")
	require.Contains(t, a.body, "404 Not Found")
	rig.want(t, single("GET", "tbl(PartitionKey='b',RowKey='2')").by(ofTable+"aud"), 403, "AuthorizationPermissionMismatch")
	a = rig.want(t, table("GET /acct/tbl()", ""), 200, "")
	require.Equal(t, "a/1 a/2 a/3 b/10 b/2 b/3 b/8 b/9 c/1 c/2 c/3 p/r", strings.Join(keysIn(a.body), " "), "what was refused did nothing")
}

// Stored access policies of each service: what they permit, and that removing one revokes at once.
func TestStoredPolicies(t *testing.T) {
	t.Parallel()
	rig := newResolveRig(t)
	for _, c := range []struct {
		acl, use, other coded
		removed         string
		letters         string
		success         int
	}{
		{
			table("PUT /acct/tbl?comp=acl", ""), table("GET /acct/tbl()", "").by("sv=2019-02-02&tn=tbl&si=p"),
			table("POST /acct/tbl", row("p", "x")).by("sv=2019-02-02&tn=tbl&si=p"), "<SignedIdentifiers />", "r", 200,
		},
		{
			blob("PUT /acct/cont?restype=container&comp=acl", ""), blob("GET /acct/cont/there", "").by("sv=2024-08-04&sr=c&si=p"),
			blob("DELETE /acct/cont/there", "").by("sv=2024-08-04&sr=b&si=p"), "", "r", 200,
		},
		{
			queue("PUT /acct/que?comp=acl", ""), queue("POST /acct/que/messages", "<QueueMessage><MessageText>x</MessageText></QueueMessage>").by("sv=2020-02-10&si=p"),
			queue("GET /acct/que/messages", "").by("sv=2020-02-10&si=p"), "", "a", 201,
		},
	} {
		name := c.acl.request
		// The signatures have no se: the policy has it.
		c.use.sas, c.other.sas = strings.TrimPrefix(c.use.sas, "se=2999-01-01&"), strings.TrimPrefix(c.other.sas, "se=2999-01-01&")
		rig.want(t, c.use, 403, "AuthenticationFailed")
		c.acl.body = policies("p 2999-01-01 " + c.letters)
		require.Less(t, c.acl.send(t, rig.urls).status, 300, name)
		rig.want(t, c.use, c.success, "")
		rig.want(t, c.other, 403, "AuthorizationPermissionMismatch")
		both := c.use
		both.sas += "&sp=" + c.letters
		rig.want(t, both, 403, "AuthenticationFailed")
		c.acl.body = policies("p 2020-01-01 " + c.letters)
		require.Less(t, c.acl.send(t, rig.urls).status, 300, name)
		rig.want(t, c.use, 403, "AuthenticationFailed")
		c.acl.body = c.removed
		require.Less(t, c.acl.send(t, rig.urls).status, 300, name)
		rig.want(t, c.use, 403, "AuthenticationFailed")
		rig.want(t, c.acl.by("sv=2019-02-02&ss=bqt&srt=sco&sp=rwdlacup"), 403, "AuthorizationFailure")
	}
	missing := table("GET /acct/none()", "").by("sv=2019-02-02&tn=none&si=p")
	rig.want(t, missing, 403, "AuthenticationFailed")
}

// Any signature for what the path names gives the account's information, whatever it permits (protocol/blob.md S5), and none
// for something else.
func TestSASOfAccountInformation(t *testing.T) {
	t.Parallel()
	rig := newResolveRig(t)
	const ask = "?restype=account&comp=properties"
	for _, sas := range []string{ofContainer + "d", "sv=2024-08-04&ss=b&srt=o&sp=d"} {
		for _, path := range []string{"/acct/cont", "/acct/cont/none"} {
			a := rig.want(t, blob("GET "+path+ask, "").by(sas), 200, "")
			require.Equal(t, "Standard_RAGRS", a.header.Get("x-ms-sku-name"))
		}
	}
	rig.want(t, blob("GET /acct/"+ask, "").by("sv=2024-08-04&ss=b&srt=c&sp=l"), 200, "")
	rig.want(t, blob("GET /acct/"+ask, "").by(ofContainer+"r"), 403, "AuthenticationFailed")
	rig.want(t, blob("GET /acct/cont"+ask, "").by("sv=2024-08-04&ss=q&srt=c&sp=l"), 403, "AuthorizationServiceMismatch")
	rig.want(t, blob("GET /acct/cont/there"+ask, "").by("sv=2024-08-04&sr=b&sp=r&spr=https"), 403, "AuthorizationProtocolMismatch")
}

// d breaks a lease and does nothing else to it, w does everything, and c nothing (protocol/blob.md 17.1).
func TestSASOfLeases(t *testing.T) {
	t.Parallel()
	rig := newResolveRig(t)
	do := func(sas, action string, headers ...string) coded { return leasing("there", action, headers...).by(sas) }
	for _, c := range []struct {
		of, create string
		status     int
		code       string
	}{
		{ofContainer, ofContainer + "c", 403, "AuthorizationPermissionMismatch"},
		{"sv=2014-02-14&sr=c&sp=", "sv=2014-02-14&sr=c&sp=c", 404, "ResourceNotFound"},
		{"sv=2024-08-04&ss=b&srt=o&sp=", "sv=2024-08-04&ss=b&srt=o&sp=c", 403, "AuthorizationPermissionMismatch"},
	} {
		rig.want(t, do(c.of+"d", "acquire", "x-ms-lease-duration", "-1"), c.status, c.code)
		rig.want(t, do(c.create, "acquire", "x-ms-lease-duration", "-1"), c.status, c.code)
		rig.want(t, do(c.of+"w", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", someLease), 201, "")
		for _, action := range []string{"renew", "release"} {
			rig.want(t, do(c.of+"d", action, "x-ms-lease-id", someLease), c.status, c.code)
		}
		rig.want(t, do(c.of+"d", "break"), 202, "")
		rig.want(t, do(c.of+"w", "release", "x-ms-lease-id", someLease), 200, "")
	}
}

// To read, write or ask for tags needs t, beside the letters of the operation; so does a count of them in an answer
// (protocol/blob.md 9.4, 16.2, 7.1, 8).
func TestSASOfTags(t *testing.T) {
	t.Parallel()
	rig := newResolveRig(t)
	const name = "/acct/cont/tagged"
	put := blob("PUT "+name, "x", "x-ms-blob-type", blockBlobs, "x-ms-tags", "k=v")
	list := blob("PUT "+name+"?comp=blocklist", "<BlockList/>", "x-ms-tags", "k=v")
	listed := "GET /acct/cont?restype=container&comp=list&include=metadata"
	for _, kind := range []struct {
		of, refused string
		status      int
	}{
		{ofContainer, "AuthorizationPermissionMismatch", 403},
		{"sv=2024-08-04&ss=b&srt=sco&sp=", "AuthorizationPermissionMismatch", 403},
		{"sv=2014-02-14&sr=c&api-version=2024-08-04&sp=", "ResourceNotFound", 404},
	} {
		for _, c := range []struct {
			coded
			letters string
			status  int
		}{
			{put, "w", 201},
			{list, "w", 201},
			{put, "w", 201},
			{blob("GET "+name+"?comp=tags", ""), "", 200},
			{blob("PUT "+name+"?comp=tags", "<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags>"), "", 204},
			{blob("GET "+name, "", "x-ms-if-tags", "k='v'"), "r", 200},
			{blob("GET "+name+"?comp=metadata", "", "x-ms-if-tags", "k='v'"), "r", 200},
			{blob("PUT "+name+"?comp=metadata", "", "x-ms-if-tags", "k='v'"), "w", 200},
			{blob("PUT "+name+"?comp=tier", "", "x-ms-if-tags", "k='v'", "x-ms-access-tier", "Cool"), "w", 200},
			{blob(listed+",tags", ""), "l", 200},
			{blob(listed+"&include=Tags", ""), "l", 200},
			{blob("DELETE "+name, "", "x-ms-if-tags", "k<>'v'"), "d", 412},
		} {
			rig.want(t, c.by(kind.of+c.letters+"t"), c.status, map[int]string{412: "ConditionNotMet"}[c.status])
			if c.letters != "" {
				rig.want(t, c.by(kind.of+c.letters), kind.status, kind.refused)
			}
			rig.want(t, c.by(kind.of+strings.ReplaceAll("racwdl", c.letters, "")), kind.status, kind.refused)
			if c.letters != "" {
				rig.want(t, c.by(kind.of+"t"), kind.status, kind.refused)
			}
		}
		rig.want(t, blob(listed, "").by(kind.of+"l"), 200, "")
	}
	for _, verb := range []string{"GET", "HEAD"} {
		require.Equal(t, "1", rig.want(t, blob(verb+" "+name, "").by(ofContainer+"rt"), 200, "").header.Get("x-ms-tag-count"))
		require.Empty(t, rig.want(t, blob(verb+" "+name, "").by(ofContainer+"r"), 200, "").header.Get("x-ms-tag-count"))
		require.Equal(t, "1", rig.want(t, blob(verb+" "+name, ""), 200, "").header.Get("x-ms-tag-count"))
	}
}

// c makes an append blob and does not replace one, a and w append, and w alone seals (protocol/auth.md 20).
func TestSASOfAppendBlobs(t *testing.T) {
	t.Parallel()
	rig := newResolveRig(t)
	for i, of := range []string{ofContainer, "sv=2024-08-04&ss=b&srt=o&sp="} {
		name := fmt.Sprintf("/acct/cont/log%d", i)
		create := blob("PUT "+name, "", "x-ms-blob-type", "AppendBlob")
		add, seal := blob("PUT "+name+"?comp=appendblock", "x"), blob("PUT "+name+"?comp=seal", "")
		rig.want(t, create.by(of+"ar"), 403, "AuthorizationPermissionMismatch")
		rig.want(t, create.by(of+"c"), 201, "")
		rig.want(t, create.by(of+"c"), 403, "UnauthorizedBlobOverwrite")
		rig.want(t, create.by(of+"w"), 201, "")
		for _, letters := range []string{"a", "w", "ac"} {
			rig.want(t, add.by(of+letters), 201, "")
		}
		rig.want(t, add.by(of+"cr"), 403, "AuthorizationPermissionMismatch")
		rig.want(t, seal.by(of+"acr"), 403, "AuthorizationPermissionMismatch")
		rig.want(t, seal.by(of+"w"), 200, "")
		rig.want(t, add.by(of+"a"), 409, "BlobIsSealed")
		rig.want(t, add, 409, "BlobIsSealed")
	}
}

// The destination of a copy is written as by Put Blob: c makes one and does not replace one. Tags of the source need t at either
// blob. The source is read by the signature in its URL; without one by the key of a request that has one.
//
// Capability: Blobs: Copies.
func TestSASOfCopies(t *testing.T) {
	t.Parallel()
	rig := newResolveRig(t)
	from := rig.urls[geo.Blob] + "/acct/cont/there"
	signed := func(letters string) string {
		r := blob("GET /acct/cont/there", "").by(ofContainer+letters).signed(t, rig.urls)
		return from + "?" + r.URL.RawQuery
	}
	sync := []string{"x-ms-requires-sync", "true"}
	for i, headers := range [][]string{nil, sync, {"x-ms-blob-type", blockBlobs}} {
		name := fmt.Sprintf("PUT /acct/cont/copy%d", i)
		to := func(source string, more ...string) coded {
			return blob(name, "", slices.Concat([]string{"x-ms-copy-source", source}, headers, more)...)
		}
		status := 202
		if i == 2 {
			status = 201
		}
		rig.want(t, to(signed("r")).by(ofContainer+"r"), 403, "AuthorizationPermissionMismatch")
		rig.want(t, to(from).by(ofContainer+"c"), 401, "CannotVerifyCopySource")
		rig.want(t, to(signed("w")).by(ofContainer+"c"), 403, "CannotVerifyCopySource")
		rig.want(t, to(signed("r")).by(ofContainer+"c"), status, "")
		rig.want(t, to(signed("r")).by(ofContainer+"c"), 403, "UnauthorizedBlobOverwrite")
		rig.want(t, to(signed("r")).by(ofContainer+"w"), status, "")
		rig.want(t, to(signed("r")), status, "")
		rig.want(t, to(from), status, "")
		rig.want(t, to(signed("r"), "x-ms-tags", "a=b").by(ofContainer+"w"), 403, "AuthorizationPermissionMismatch")
		rig.want(t, to(signed("r"), "x-ms-tags", "a=b").by(ofContainer+"wt"), status, "")
		if i > 0 {
			rig.want(t, to(signed("rt"), "x-ms-copy-source-tag-option", "COPY").by(ofContainer+"w"), 403, "AuthorizationPermissionMismatch")
			rig.want(t, to(signed("r"), "x-ms-copy-source-tag-option", "COPY").by(ofContainer+"wt"), 403, "CannotVerifyCopySource")
			rig.want(t, to(signed("rt"), "x-ms-copy-source-tag-option", "COPY").by(ofContainer+"wt"), status, "")
		}
	}
	block := blob("PUT /acct/cont/blocks?comp=block&blockid=AA==", "", "x-ms-copy-source", signed("r"))
	rig.want(t, block.by(ofContainer+"ar"), 403, "AuthorizationPermissionMismatch")
	rig.want(t, block.by(ofContainer+"c"), 201, "")
	rig.want(t, blob("PUT /acct/cont/log", "", "x-ms-blob-type", "AppendBlob"), 201, "")
	add := blob("PUT /acct/cont/log?comp=appendblock", "", "x-ms-copy-source", signed("r"))
	rig.want(t, add.by(ofContainer+"cr"), 403, "AuthorizationPermissionMismatch")
	rig.want(t, add.by(ofContainer+"a"), 201, "")
	abort := blob("PUT /acct/cont/copy0?comp=copy&copyid="+someLease, "", "x-ms-copy-action", "abort")
	rig.want(t, abort.by(ofContainer+"c"), 403, "AuthorizationPermissionMismatch")
	rig.want(t, abort.by(ofContainer+"w"), 409, "NoPendingCopyOperation")
}

// Signatures of blobs: c creates and does not overwrite, and the answer shows what the signature says.
func TestSASOfBlobs(t *testing.T) {
	t.Parallel()
	rig := newResolveRig(t)
	put := func(name, body string) coded { return blob("PUT /acct/cont/"+name, body, "x-ms-blob-type", blockBlobs) }
	rig.want(t, put("new", "x").by(ofContainer+"c"), 201, "")
	rig.want(t, put("new", "y").by(ofContainer+"c"), 403, "UnauthorizedBlobOverwrite")
	rig.want(t, put("new", strings.Repeat("y", 1<<20)).by(ofContainer+"c"), 403, "UnauthorizedBlobOverwrite")
	met := put("new", "y") // A condition that holds gives no right to overwrite.
	for _, condition := range [][]string{{"If-Match", "*"}, {"If-Unmodified-Since", "Fri, 01 Jan 2999 00:00:00 GMT"}} {
		met.headers = append([]string{"x-ms-blob-type", blockBlobs}, condition...)
		rig.want(t, met.by(ofContainer+"c"), 403, "UnauthorizedBlobOverwrite")
	}
	rig.want(t, put("new", "y").by(ofContainer+"w"), 201, "")
	rig.want(t, blob("PUT /acct/cont/new?comp=block&blockid=AA==", "x").by(ofContainer+"c"), 201, "")
	list := blob("PUT /acct/cont/new?comp=blocklist", `<BlockList><Latest>AA==</Latest></BlockList>`)
	rig.want(t, list.by(ofContainer+"c"), 403, "UnauthorizedBlobOverwrite")
	rig.want(t, list.by(ofContainer+"cw"), 201, "")
	rig.want(t, blob("GET /acct/cont?restype=container&comp=list", "").by(ofContainer+"l"), 200, "")
	rig.want(t, blob("GET /acct/cont?restype=container&comp=list", "").by(ofContainer+"r"), 403, "AuthorizationPermissionMismatch")
	rig.want(t, blob("GET /acct/cont?restype=container", "").by(ofContainer+"rl"), 403, "AuthorizationFailure")
	const one = "sv=2024-08-04&sr=b&sp=r"
	rig.want(t, blob("GET /acct/cont?restype=container&comp=list", "").by("sv=2018-03-28&sr=b&sp=rl"), 403, "AuthenticationFailed")
	shown := one + "&rscc=no-store&rscd=attachment&rsce=br&rscl=de&rsct=text/plain"
	for _, verb := range []string{"GET", "HEAD"} {
		a := rig.want(t, blob(verb+" /acct/cont/there", "").by(shown), 200, "")
		got := map[string]string{}
		for _, name := range []string{"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Type"} {
			got[name] = a.header.Get(name)
		}
		require.Equal(t, map[string]string{
			"Cache-Control": "no-store", "Content-Disposition": "attachment", "Content-Encoding": "br", "Content-Language": "de", "Content-Type": "text/plain",
		}, got)
	}
	a := rig.want(t, blob("GET /acct/cont/there?rsct=text/html", ""), 200, "")
	require.Equal(t, "application/octet-stream", a.header.Get("Content-Type"), "not without a signature")
}

// A wrong signature is refused before the body is asked for, and so is one that does not permit the write.
func TestSASIsCheckedBeforeTheBody(t *testing.T) {
	t.Parallel()
	rig := newResolveRig(t)
	for code, c := range map[string]coded{
		"AuthenticationFailed":            table("POST /acct/tbl", row("p", "new")).by("sv=2019-02-02&tn=other&sp=a"),
		"AuthorizationPermissionMismatch": table("POST /acct/tbl", row("p", "new")).by(ofTable + "r"),
		"AuthorizationFailure":            table("PUT /acct/tbl(PartitionKey='p',RowKey='new')", "{}").by(ofTable + "au&spk=q"),
	} {
		body := &heldBody{Reader: strings.NewReader(c.body), asked: make(chan struct{}), release: make(chan struct{})}
		r := c.signed(t, rig.urls)
		r.Body = io.NopCloser(body)
		r.Header.Set("Expect", "100-continue")
		a := send(t, r)
		require.Equal(t, 403, a.status, a.body)
		require.Equal(t, code, a.code)
		select {
		case <-body.asked:
			require.Fail(t, "the body was asked for", code)
		default:
		}
	}
}

// Who has a signature may use it: no log and no answer has it, whatever goes wrong. Hops pass it on as it came.
func TestSASStaysSecret(t *testing.T) {
	t.Parallel()
	const query = "sv=2019-02-02&tn=tbl&SP=r&se=2999-01-01&sig=c2VjcmV0LXNpZ25hdHVyZS1vZi0zMi1ieXRlcy0%2B%2F%2F8%3D&x=%61"
	const sent = "/acct/tbl()?" + query
	var seen string
	other := stub(t, func(w http.ResponseWriter, r *http.Request) {
		seen = r.RequestURI
		w.WriteHeader(http.StatusTeapot)
	})
	dead := stub(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	north, south := geo.Location("north"), geo.Location("south")
	for name, o := range map[string]api.Options{
		"a bug":             {Location: north, Directory: buggyDirectory{}},
		"refused":           {Location: north},
		"another location":  {Location: south, Forward: routing.NewForwarder("test", at(other), nil)},
		"no location":       {Location: south, Forward: routing.NewForwarder("test", at(dead), nil)},
		"a gateway":         {Locations: []geo.Location{north}, Forward: routing.NewForwarder("test", at(other), nil)},
		"a gateway's error": {Locations: []geo.Location{north}, Forward: routing.NewForwarder("test", at(dead), nil)},
	} {
		var logged lockedBuffer
		if o.Directory == nil {
			o.Directory = directory{"acct": "north"}
		}
		if o.Forward == nil {
			o.Forward = routing.NewForwarder("test", at(dead), nil)
		}
		t.Cleanup(o.Forward.Close)
		o.Clock, o.IDs = clock.System{}, protocol.NewRequestIDs([32]byte{})
		o.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
		f := &frontEnd{Server: api.NewServer(o), forward: o.Forward}
		f.listen(t)
		seen = ""
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url, nil)
		require.NoError(t, err)
		r.URL.Opaque, r.URL.RawQuery, _ = strings.Cut(sent, "?")
		a := send(t, r)
		require.GreaterOrEqual(t, a.status, 400, name)
		if a.status == http.StatusTeapot {
			require.Equal(t, sent, seen, name)
		}
		for _, text := range []string{logged.String(), a.body, fmt.Sprint(a.header)} {
			plain, err := url.QueryUnescape(text)
			if err != nil {
				plain = text
			}
			require.NotContains(t, plain, "c2VjcmV0LXNpZ25hdHVyZS1vZi0zMi1ieXRlcy0", name)
		}
		require.Equal(t, name == "another location" || name == "a gateway", a.status == http.StatusTeapot, name)
		require.Equal(t, name == "a bug", strings.Contains(logged.String(), "a bug in the server"), logged.String())
	}
}

// The version of an answer is that of the signature where the rules have it so, and old signatures have no others.
func TestVersionOfAnswersToSAS(t *testing.T) {
	t.Parallel()
	rig := newResolveRig(t)
	c := queue("GET /acct/que/messages?peekonly=true", "", "x-ms-version", "2019-02-02")
	require.Equal(t, "2013-08-15", rig.want(t, c.by("sv=2013-08-15&sp=r"), 200, "").header.Get("x-ms-version"))
	require.Equal(t, "2019-02-02", rig.want(t, c.by("sv=2020-02-10&sp=r"), 200, "").header.Get("x-ms-version"))
	c.request += "&api-version=2018-03-28"
	require.Equal(t, "2018-03-28", rig.want(t, c.by("sv=2020-02-10&sp=r"), 200, "").header.Get("x-ms-version"))
}

// An operation that is not built is 501 by a signature as by a key, whatever its letters and types: nobody looks for a
// permission that would not help.
func TestSASOfWhatIsNotBuilt(t *testing.T) {
	t.Parallel()
	rig := newResolveRig(t)
	paths := map[operation.Resource]string{operation.Service: "/acct/", operation.BlobAccount: "/acct/", operation.Container: "/acct/cont", operation.Blob: "/acct/cont/there"}
	asked := 0
	for _, o := range operation.Of(geo.Blob) {
		if o.Built {
			continue
		}
		asked++
		verb, _, _ := strings.Cut(o.Verbs.String(), ",")
		query, headers := "?restype="+o.Restype+"&comp="+o.Comp, []string(nil)
		for _, f := range o.With {
			if f.Query != "" {
				query += "&" + f.Query + "=" + cmp.Or(f.Value, "x")
				continue
			}
			headers = append(headers, f.Header, cmp.Or(f.Value, "http://127.0.0.1/acct/cont/there"))
		}
		path := paths[o.On]
		require.NotEmpty(t, path, o.Name)
		c := blob(verb+" "+path+strings.ReplaceAll(strings.ReplaceAll(query, "restype=&", ""), "comp=&", ""), "", headers...)
		rig.want(t, c, 501, "NotImplemented")
		rig.want(t, c.by("sv=2024-08-04&ss=b&srt=o&sp=r"), 501, "NotImplemented")
		rig.want(t, c.by("sv=2024-08-04&ss=q&srt=sco&sp=r"), 403, "AuthorizationServiceMismatch")
		if o.On == operation.Container || o.On == operation.Blob {
			rig.want(t, c.by(ofContainer+"r"), 501, "NotImplemented")
		}
	}
	require.Greater(t, asked, 10)
}
