package tables

import (
	"net/http"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/tables/filter"
	"antipode/api/tables/odata"
	"antipode/api/wire"
	"antipode/services/storageerr"
)

// input is what an operation reads of the headers and the query of its request, or of its part
// of a batch. Handlers read neither.
type input struct {
	// row is the operation's, and handler serves it.
	row     *operation.Operation
	handler *handler
	res     odata.Resource
	// verb is the method, or what stands for it (verbOf).
	verb string

	// prefer is what Prefer asks for: of an insert, or of the inserts of a batch.
	prefer string
	// match is the If-Match of a write, noneMatch the If-None-Match of a read.
	match     protocol.TableMatch
	noneMatch protocol.TableNoneMatch
	// codec writes the document of the answer; nil if success has none.
	codec codec
	// body reads the body; nil if the operation takes no entity and no table.
	body codec
	// boundary is that of a multipart body.
	boundary string
	// md5 checks the body of a request; nil if the client sent no hash.
	md5 *bodyMD5

	options
}

// options are the query options of a read.
type options struct {
	// top is the most rows that the answer has.
	top int
	// filter is $filter, and filterText its text.
	filter     *filter.Filter
	filterText string
	// selection is $select; nil shows everything.
	selection *odata.Selection
	// next is where a page of entities starts, nextTable where one of tables does.
	next      odata.Continuation
	nextTable string
}

// source is where the fields of an operation stand.
type source struct {
	header http.Header
	query  protocol.Query
	// batch is the input of the batch that the operation is a part of; nil for a request.
	batch *input
}

// parse reads the fields of s in the order of protocol/table.md 8.2: what the operation needs,
// conditions, media types, and the options of a query. Path and verb are known. After an error
// the preference and the codec are those that the answer to the error has.
func (in *input) parse(v protocol.Version, s source) error {
	if v < in.row.Since {
		return storageerr.InvalidInput
	}
	if err := checkDataVersion(v, s.header); err != nil {
		return err
	}
	in.parsePrefer(v, s)
	if err := in.parseConditions(v, s); err != nil {
		return err
	}
	if err := in.parseMedia(v, s); err != nil {
		return err
	}
	if in.handler.options == nil {
		return nil
	}
	if v < protocol.Version20110818 && s.query.Has("$select") {
		return storageerr.InvalidInput // To show more than was asked for is another answer.
	}
	return in.handler.options(&in.options, v, s.query)
}

// typeError gives the error of what is no operation the type that the client asks of a document
// (protocol/table.md 8.1). A type that is not served is no error here: resource and verb are
// checked before the media type (8.2).
func (in *input) typeError(v protocol.Version, s source) {
	in.codec, _ = negotiate(v, s.header.Get("Accept"), s.query.Get("$format"))
}

const (
	preferNoContent = "return-no-content"
	preferContent   = "return-content"
)

// parsePrefer reads Prefer, which is never refused: it has no effect before 2011-08-18, nor has
// an unknown value. That of a batch is the default of its parts.
func (in *input) parsePrefer(v protocol.Version, s source) {
	text := s.header.Get("Prefer")
	switch {
	case v < protocol.Version20110818:
	case text == "" && s.batch != nil:
		in.prefer = s.batch.prefer
	case text == preferNoContent || text == preferContent:
		in.prefer = text
	}
}

// applied is the preference that the answer applies; empty if there is none.
func (in *input) applied() string {
	if in.handler == nil || in.handler.answers != unlessPreferred {
		return ""
	}
	return in.prefer
}

// contentType is that of the document of the answer; empty if success has none.
func (in *input) contentType() string {
	if in.codec == nil {
		return ""
	}
	return in.codec.ContentType()
}

// parseConditions reads If-Match and If-None-Match. Without an If-Match, a write that is no
// upsert is refused; in a batch it is of any version of the entity (protocol/table.md 9.7, 9.8).
func (in *input) parseConditions(v protocol.Version, s source) (err error) {
	takes := in.row.Takes
	if takes&operation.IfNoneMatch != 0 {
		in.noneMatch = protocol.ParseTableNoneMatch(s.header)
	}
	if takes&operation.IfMatch == 0 {
		return nil
	}
	if in.match, err = protocol.ParseTableMatch(in.verb, s.header); err != nil {
		return err
	}
	if in.match.Sent || in.verb != http.MethodDelete && v >= protocol.Version20110818 {
		return nil
	}
	if s.batch == nil {
		return storageerr.MissingRequiredHeader.With("HeaderName", "If-Match")
	}
	in.match.Sent, in.match.Any = true, true
	return nil
}

// parseMedia reads Accept or $format of what is answered with a document, and Content-Type and
// Content-MD5 of what has a body. The boundaries of a batch delimit the bodies of its parts: a
// hash of one is ignored, as a length is.
func (in *input) parseMedia(v protocol.Version, s source) (err error) {
	if in.handler.answers == always || in.handler.answers == unlessPreferred && in.prefer != preferNoContent {
		if in.codec, err = negotiate(v, s.header.Get("Accept"), s.query.Get("$format")); err != nil {
			return err
		}
	}
	switch in.row.Body.Kind {
	case operation.JSON:
		in.body, err = bodyCodec(v, s.header.Get("Content-Type"))
	case operation.Multipart:
		in.boundary, err = wire.BatchBoundary(s.header.Get("Content-Type"))
	default:
		return nil
	}
	if err != nil || s.batch != nil {
		return err
	}
	in.md5, err = newBodyMD5(s.header.Get("Content-MD5"))
	return err
}

// neverBuilt are the OData options that this service never had (protocol/table.md 1.5): to
// ignore one would answer another question than was asked.
func neverBuilt() []string {
	return []string{"$orderby", "$skip", "$skiptoken", "$expand", "$inlinecount", "$apply"}
}

// ofPage reads what a page of entities and one of tables have: $top, which is the row cap if
// there is none (protocol/table.md 12), and $filter.
func (o *options) ofPage(v protocol.Version, q protocol.Query) (err error) {
	for _, name := range neverBuilt() {
		if q.Has(name) {
			return storageerr.NotImplemented
		}
	}
	o.top = odata.TopMax
	if text, sent := q.Lookup("$top"); sent {
		if o.top, err = odata.ParseTop(text); err != nil {
			return err
		}
	}
	o.filterText = q.Get("$filter")
	o.filter, err = filter.Parse(v, o.filterText)
	return err
}

// ofTables reads the options of a query of tables.
func (o *options) ofTables(v protocol.Version, q protocol.Query) (err error) {
	if err := o.ofPage(v, q); err != nil {
		return err
	}
	if token := q.Get("nexttablename"); token != "" {
		o.nextTable, err = odata.DecodeToken(token)
	}
	return err
}

// ofEntities reads the options of a query of entities.
func (o *options) ofEntities(v protocol.Version, q protocol.Query) (err error) {
	if err := o.ofPage(v, q); err != nil {
		return err
	}
	if err := o.ofEntity(v, q); err != nil {
		return err
	}
	o.next, err = odata.ParseContinuation(q.Get("nextpartitionkey"), q.Get("nextrowkey"))
	return err
}

// ofEntity reads the options of a point read.
func (o *options) ofEntity(_ protocol.Version, q protocol.Query) (err error) {
	if text, sent := q.Lookup("$select"); sent {
		o.selection, err = odata.ParseSelect(text)
	}
	return err
}
