package browser

import (
	"context"
	"fmt"
	"time"

	"github.com/chromedp/chromedp"
)

// press clicks on an element as a person does: when it stands still and nothing lies over it. A page still moves when
// names and lists arrive, and takes no clicks in the moments in which a dialog closes. A click that reaches something else
// all the same is kept from it, and the element is looked for anew.
func press(selector string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		if err := chromedp.WaitVisible(selector, chromedp.ByQuery).Do(ctx); err != nil {
			return err
		}
		for {
			at, err := aim(ctx, selector)
			if err != nil {
				return err
			}
			if err := chromedp.MouseClickXY(at.X, at.Y).Do(ctx); err != nil {
				return err
			}
			var missed bool
			if err := chromedp.Evaluate(`(() => { const p = window.pressing; delete window.pressing; return p?.end() === true; })()`,
				&missed).Do(ctx); err != nil || !missed {
				return ctx.Err() // a page that is gone was left by this click
			}
		}
	})
}

// spot is where an element is in the window. It is Clear if a click there reaches it, and reaches something else Instead
// if not.
type spot struct {
	X, Y    float64
	Clear   bool
	Instead string
}

// aim waits until an element is at the same place twice and a click reaches it, and keeps the next click from all others.
func aim(ctx context.Context, selector string) (spot, error) {
	for last, limit := (spot{}), time.Now().Add(stepLimit-5*time.Second); ; {
		var now spot
		if err := chromedp.Evaluate(fmt.Sprintf(`(() => {
			const element = document.querySelector(%q);
			const box = element?.getClientRects()[0];
			if (!box) return {};
			const [X, Y] = [box.left + box.width / 2, box.top + box.height / 2];
			const reaches = (hit) => hit !== null && (element.contains(hit) || hit.closest('label')?.control === element);
			const hit = document.elementFromPoint(X, Y);
			const Clear = reaches(hit);
			window.pressing?.end();
			if (!Clear) {
				element.scrollIntoView({block: 'center', inline: 'nearest', behavior: 'instant'});
				return {X, Y, Instead: hit?.outerHTML.slice(0, 200) ?? 'nothing'};
			}
			const kinds = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click'];
			let missed = false;
			const keep = (event) => {
				if (missed || (event.type === 'pointerdown' && !reaches(event.target))) {
					missed = true;
					event.stopImmediatePropagation();
					event.preventDefault();
				}
			};
			kinds.forEach((kind) => window.addEventListener(kind, keep, true));
			window.pressing = {end: () => { kinds.forEach((kind) => window.removeEventListener(kind, keep, true)); return missed; }};
			return {X, Y, Clear};
		})()`, selector), &now).Do(ctx); err != nil {
			return spot{}, err
		}
		if now.Clear && now == last {
			return now, nil
		}
		if last = now; time.Now().After(limit) {
			return spot{}, fmt.Errorf("a click on %s does not reach it at %g, %g, but %q", selector, now.X, now.Y, now.Instead)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return spot{}, ctx.Err()
		}
	}
}
