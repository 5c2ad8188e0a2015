//go:build pictures

package browser

import (
	"context"
	"os"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Picture writes what the whole page looks like to a file.
func (tab *Tab) Picture(path string) {
	tab.t.Helper()
	var shot []byte
	tab.Do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, _, _, _, _, size, err := page.GetLayoutMetrics().Do(ctx)
		if err != nil {
			return err
		}
		shot, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).
			WithClip(&page.Viewport{Width: size.Width, Height: size.Height, Scale: 1}).Do(ctx)
		return err
	}))
	if err := os.WriteFile(path, shot, 0o600); err != nil {
		tab.t.Fatal(err)
	}
}

// Screen writes what the window shows to a file.
func (tab *Tab) Screen(path string) {
	tab.t.Helper()
	var shot []byte
	tab.Do(chromedp.CaptureScreenshot(&shot))
	if err := os.WriteFile(path, shot, 0o600); err != nil {
		tab.t.Fatal(err)
	}
}
