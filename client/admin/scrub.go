package admin

import "regexp"

// secrets are what Scrub replaces: forms in which keys, passwords, tokens and signatures are written in texts. The part
// before a secret, which says what it is, stays.
var secrets = []struct { //nolint:gochecknoglobals // A table.
	form *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*(?:PRIVATE KEY|SEED|JWT)-----.*?(?:-----?END [A-Z0-9 ]*-----?-?|\z)`), "[removed]"},
	{regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://)[^/\s"'@]+@`), "${1}[removed]@"},
	{regexp.MustCompile(`(?i)\b(sig|signature|code|token|access_token|api[-_]?key|secret|password|pwd|auth)=[^&\s"'<>;]+`), "${1}=[removed]"},
	{regexp.MustCompile(`(?i)\b(AccountKey|SharedAccessSignature)=[^;\s"'<>]+`), "${1}=[removed]"},
	{regexp.MustCompile(`(?i)\b(SharedKey(?:Lite)?\s+[a-z0-9-]+):[A-Za-z0-9+/=]+`), "${1}:[removed]"},
	{regexp.MustCompile(`(?i)\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}`), "${1} [removed]"},
	{regexp.MustCompile(`(?i)(["']?\b(?:[a-z_]*password|[a-z_]*secret|(?:admin_|access_)?token|key1|key2|account_key|private_key|seed)["']?\s*[:=]\s*["']?)[^\s"',}/]{4,}`), "${1}[removed]"},
	{regexp.MustCompile(`[A-Za-z0-9+/]{86}==`), "[removed]"},                                       // The key of an account.
	{regexp.MustCompile(`\bS[UAON][A-Z2-7]{56}\b`), "[removed]"},                                   // A seed of NATS.
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), "[removed]"}, // A JWT.
}

// Scrub removes from a text what has the form of a key, a password, a token or a signature. It removes too much rather than
// too little, and is no proof: what must not be shown is not to be put into the text.
func Scrub(text string) string {
	for _, s := range secrets {
		text = s.form.ReplaceAllString(text, s.with)
	}
	return text
}
