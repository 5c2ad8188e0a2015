// Package docs holds the documentation that the program serves at /docs/, as it is written. See package internal/ui/docs
// for how it is shown. The decisions and the pictures stay in the repository.
package docs

import "embed"

//go:embed *.md api guides/*.md guides/*.conf guides/providers operations/*.md operations/proxies
var files embed.FS

// Files are the pages, each under its path below docs/.
func Files() embed.FS { return files }
