package oidc_test
import ("testing";"net/http";"net/http/httptest";"strings";"time";"net/url"
"github.com/signet-idm/signet/internal/app"
"github.com/signet-idm/signet/internal/testdb")
func TestProf(t *testing.T){
 w:=open(t,testdb.New(t,testdb.SQLite))
 id,sec:=w.application(app.Web,app.SecretBasic)
 tok:=w.party(id,sec,"profile","email").tokens(w.in)
 h:=w.server.Handler()
 for _,kind:=range []string{"introspect","userinfo","me"} {
 n:=0
 start:=time.Now()
 r0:=testing.AllocsPerRun(1,func(){})
 _=r0
 one:=func(){
  var r *http.Request
  switch kind { case "introspect":
   r=httptest.NewRequest("POST",w.url+"/oauth/introspect",strings.NewReader(url.Values{"token":{tok.AccessToken}}.Encode())); r.Header.Set("Content-Type","application/x-www-form-urlencoded"); r.Header.Set("Authorization",basic(id,sec))
  case "userinfo": r=httptest.NewRequest("GET",w.url+"/oauth/userinfo",nil); r.Header.Set("Authorization","Bearer "+tok.AccessToken)
  case "me": r=httptest.NewRequest("GET",w.url+"/v1/users/me",nil); r.Header.Set("Authorization","Bearer "+w.in)
  }
  rec:=httptest.NewRecorder(); h.ServeHTTP(rec,r); if rec.Code!=200 {t.Fatal(rec.Code,rec.Body)}
 }
 for time.Since(start)<3*time.Second { one(); n++ }
 t.Logf("%s %v/op %v allocs", kind, time.Since(start)/time.Duration(n), testing.AllocsPerRun(200,one))
 }
}
