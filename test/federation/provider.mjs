// An OpenID Connect provider that nobody here wrote (npm oidc-provider), for tests. Options come as JSON in the first argument:
//
//   clients    as oidc-provider takes them
//   port       0: any
//   https      {key, cert} in PEM; left out: plain http
//   issuer     what it calls itself; left out: its own address
//   noUserinfo has no userinfo endpoint, so claims are in ID tokens
//   issOff     sends no iss in its answers
//   claims     what everybody's account says, besides sub
//
// It prints its address. People sign in by posting login=NAME to the address that an interaction redirects to, and agree to everything. A GET of
// /test/rotate gives it another signing key.
import http from 'node:http'
import https from 'node:https'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(new URL('../clients/package.json', import.meta.url))
const { default: Provider } = await import(pathToFileURL(require.resolve('oidc-provider')))
const options = JSON.parse(process.argv[2] ?? '{}')

// Exported as it is made: node can hang for good when a new key is exported afterwards.
const newKey = (kid) => ({
  ...generateKeyPairSync('rsa', { modulusLength: 2048, publicKeyEncoding: { format: 'jwk' }, privateKeyEncoding: { format: 'jwk' } }).privateKey, kid, use: 'sig', alg: 'RS256'
})

let handle
const listener = (req, res) => {
  if (req.url === '/test/rotate') {
    make()
    res.end('rotated')
    return
  }
  handle(req, res)
}
const server = options.https ? https.createServer(options.https, listener) : http.createServer(listener)

let address
let round = 0
function make () {
  const provider = new Provider(options.issuer ?? address, {
    clients: options.clients ?? [],
    jwks: { keys: [newKey(`key-${++round}`)] },
    conformIdTokenClaims: !options.noUserinfo,
    claims: { openid: ['sub'], profile: ['preferred_username', 'given_name', 'family_name', 'locale'], email: ['email', 'email_verified'] },
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'],
    features: { devInteractions: { enabled: false }, userinfo: { enabled: !options.noUserinfo } },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    ttl: { Interaction: 600, Session: 600, Grant: 600, AuthorizationCode: 60, AccessToken: 600, IdToken: 600 },
    interactions: { url: (_, interaction) => `/test/interaction/${interaction.uid}` },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, preferred_username: id, given_name: 'Jo', family_name: 'Doe', email: `${id}@example.org`, email_verified: true, ...options.claims })
    })
  })
  if (options.issOff) {
    provider.use(async (ctx, next) => {
      await next()
      if (ctx.path.endsWith('/.well-known/openid-configuration') && ctx.body) delete ctx.body.authorization_response_iss_parameter_supported
      const location = ctx.response.get('location') ?? ''
      if (location.includes('iss=')) {
        const to = new URL(location, address)
        to.searchParams.delete('iss')
        ctx.set('location', to.href)
      }
      if (typeof ctx.body === 'string') ctx.body = ctx.body.replace(/<input type="hidden" name="iss"[^>]*>/, '')
    })
  }
  const callback = provider.callback()
  handle = async (req, res) => {
    if (!req.url.startsWith('/test/interaction/')) return callback(req, res)
    try {
      if (req.method === 'GET') {
        res.setHeader('content-type', 'text/html')
        res.end('<!doctype html><title>Provider</title><link rel="icon" href="data:,"><form method="post"><label>Name <input name="login"></label><button>Sign in</button></form>')
        return
      }
      let body = ''
      for await (const chunk of req) body += chunk
      const form = new URLSearchParams(body)
      const { prompt, params, session, grantId } = await provider.interactionDetails(req, res)
      if (form.has('cancel')) {
        await provider.interactionFinished(req, res, { error: 'access_denied', error_description: 'the person said no' })
        return
      }
      const accountId = form.get('login') || session?.accountId
      const grant = (grantId && await provider.Grant.find(grantId)) || new provider.Grant({ accountId, clientId: params.client_id })
      grant.addOIDCScope(params.scope)
      const result = { consent: { grantId: await grant.save() } }
      if (prompt.name === 'login') result.login = { accountId, amr: ['pwd', 'otp'] }
      await provider.interactionFinished(req, res, result, { mergeWithLastSubmission: true })
    } catch (err) {
      res.statusCode = 500
      res.end(String(err))
    }
  }
}

server.listen(options.port ?? 0, '127.0.0.1', () => {
  address = `${options.https ? 'https' : 'http'}://127.0.0.1:${server.address().port}`
  make()
  console.log(address)
})
