// A browser, played by fetch: it keeps cookies, fills in the forms of Signet's pages, and presses their first button.
import assert from 'node:assert/strict';

const entities = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&#34;': '"', '&#39;': "'", '&#43;': '+' };
const attribute = (tag, name) => tag.match(new RegExp(`\\s${name}="([^"]*)"`))?.[1].replace(/&(amp|lt|gt|#34|#39|#43);/g, (e) => entities[e]) ?? '';

// Browser is one that runs no script.
export class Browser {
  cookies = new Map();

  constructor(issuer, name, password) {
    Object.assign(this, { issuer, name, password });
  }

  // open goes to an address of Signet, or sends a form there, and follows redirects until there is a page or another site.
  async open(address, form) {
    for (let hops = 0; hops < 10; hops++) {
      if (new URL(address).origin !== this.issuer) return { address };
      const headers = { cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ') };
      if (form) headers.origin = this.issuer;
      const response = await fetch(address, { method: form ? 'POST' : 'GET', body: form, headers, redirect: 'manual' });
      for (const set of response.headers.getSetCookie()) {
        const [, name, value] = set.match(/^([^=]+)=([^;]*)/);
        if (/max-age=0/i.test(set)) this.cookies.delete(name);
        else this.cookies.set(name, value);
      }
      const to = response.headers.get('location');
      if (!to) return { address, status: response.status, html: await response.text() };
      [address, form] = [new URL(to, address).href, undefined];
    }
    assert.fail(`sent round in circles at ${address}`);
  }

  // go does what the pages ask for, until they lead to another site or ask for nothing more.
  async go(address) {
    let at = await this.open(address);
    for (let steps = 0; steps < 10 && at.html; steps++) {
      const page = at.html.match(/<form[\s\S]*?<\/form>/)?.[0];
      const onward = at.html.match(/<a class="button"[^>]*>/)?.[0];
      if (!page && !onward) return at;
      if (!page) {
        at = await this.open(new URL(attribute(onward, 'href'), at.address).href);
        continue;
      }
      const form = new URLSearchParams();
      for (const [tag] of page.matchAll(/<(input|button)\b[^>]*>/g)) {
        const name = attribute(tag, 'name');
        if (name && !form.has(name)) form.set(name, attribute(tag, 'value'));
      }
      if (form.get('loginName') === '') form.set('loginName', this.name);
      if (form.has('password')) form.set('password', this.password);
      at = await this.open(at.address, form);
    }
    return at;
  }
}
