// Pairs of keys made in the browser: the private part never leaves it.

export interface KeyPair {
  /** PEM (`PUBLIC KEY`). */
  readonly publicKey: string;
  /** PEM (`PRIVATE KEY`, PKCS #8). */
  readonly privateKey: string;
}

function pem(label: string, bytes: ArrayBuffer): string {
  const text = btoa(String.fromCharCode(...new Uint8Array(bytes)));
  return `-----BEGIN ${label}-----\n${(text.match(/.{1,64}/g) ?? []).join('\n')}\n-----END ${label}-----\n`;
}

/** Makes a pair for ES256. */
export async function makeKeyPair(): Promise<KeyPair> {
  const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
  const [publicKey, privateKey] = await Promise.all([
    crypto.subtle.exportKey('spki', pair.publicKey),
    crypto.subtle.exportKey('pkcs8', pair.privateKey),
  ]);
  return { publicKey: pem('PUBLIC KEY', publicKey), privateKey: pem('PRIVATE KEY', privateKey) };
}

/** The claims of lines such as `sub=repo:acme/shop:*`. A value may have more of `=`. */
export function claimsOf(lines: readonly string[]): { name: string; value: string }[] {
  return lines.map((line) => {
    const [name = '', ...value] = line.split('=');
    return { name: name.trim(), value: value.join('=').trim() };
  });
}
