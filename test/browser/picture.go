package browser

import (
	"bytes"
	"cmp"
	"context"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"slices"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Picture writes what the page looks like to a file, all of it, in few colours: such pictures are kept in the repository.
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
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		tab.t.Fatal(err)
	}
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&small, reduced(full)); err != nil {
		tab.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tab.t.Fatal(err)
	}
	if err := os.WriteFile(path, small.Bytes(), 0o644); err != nil {
		tab.t.Fatal(err)
	}
}

// reduced keeps the most frequent colours and takes the nearest of them for the others, which are the edges of letters.
func reduced(full image.Image) image.Image {
	const most = 64
	count := map[color.RGBA]int{}
	bounds := full.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++
		}
	}
	var colours []color.RGBA
	for c := range count {
		colours = append(colours, c)
	}
	slices.SortFunc(colours, func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	for _, c := range colours[:min(len(colours), most)] {
		palette = append(palette, c)
	}
	small := image.NewPaletted(bounds, palette)
	draw.Draw(small, bounds, full, bounds.Min, draw.Src)
	return small
}
