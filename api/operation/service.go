package operation

import "antipode/api/protocol"

const restypeService = "service"

// xmlMax is the longest XML document of an operation without a special limit, in bytes.
const xmlMax = 256 << 10

func body(kind BodyKind, bytesMax int64) Body {
	return Body{Kind: kind, Limits: []Limit{{Bytes: bytesMax}}}
}

// serviceRows are the calls that every service has (protocol/service.md 1), with the
// service's name in theirs.
func serviceRows(service string) []Operation {
	return []Operation{
		{
			Name: "Get" + service + "ServiceStats", Built: true, On: Service, Verbs: GET, Restype: restypeService, Comp: "stats",
			Since: protocol.Version20130815, Effect: Reads, Secondary: Only, Leads: Catalog, SAS: SAS{Type: "s", Account: "r"},
		},
		{
			Name: "Get" + service + "ServiceProperties", Built: true, On: Service, Verbs: GET, Restype: restypeService, Comp: "properties",
			Effect: Reads, Secondary: Yes, Leads: Catalog, SAS: SAS{Type: "s", Account: "r"},
		},
		{
			Name: "Set" + service + "ServiceProperties", Built: true, On: Service, Verbs: PUT, Restype: restypeService, Comp: "properties",
			Leads: Catalog, SAS: SAS{Type: "s", Account: "w"}, Body: body(XML, xmlMax),
		},
	}
}

// userDelegationKey is Get User Delegation Key, for bearer tokens alone. It is not served
// through -secondary, nor sent twice: each call makes another key.
func userDelegationKey() Operation {
	return Operation{
		Name: "GetUserDelegationKey", On: Service, Verbs: POST, Restype: restypeService, Comp: "userdelegationkey",
		Since: "2018-11-09", Body: body(XML, xmlMax),
	}
}
