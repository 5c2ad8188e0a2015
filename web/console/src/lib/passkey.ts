// Asks the browser for a passkey.

/** Whether this browser can use passkeys. */
export function passkeysWork(): boolean {
  return typeof PublicKeyCredential !== 'undefined' && 'parseRequestOptionsFromJSON' in PublicKeyCredential;
}

/** Signs the challenge of the server with a passkey and gives the answer as JSON. */
export async function passkeyProof(requestOptions: string): Promise<string> {
  const parsed = JSON.parse(requestOptions) as {
    publicKey?: PublicKeyCredentialRequestOptionsJSON;
  } & PublicKeyCredentialRequestOptionsJSON;
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(parsed.publicKey ?? parsed);
  const credential = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential;
  return JSON.stringify(credential.toJSON());
}
