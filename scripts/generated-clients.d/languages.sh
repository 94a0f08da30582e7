# shellcheck shell=bash disable=SC2154
# For each language: generate_LANGUAGE, compile_LANGUAGE and live_LANGUAGE. docs/api-guide.md has the same options.

generate_python() { generate python python --additional-properties packageName=saltern_api; }
compile_python() { :; }
live_python() {
    PYTHONPATH=$clients/python PYTHONDONTWRITEBYTECODE=1 "$repository/.venv/bin/python" "$lives/life.py"
}

# Needs Foundation alone. Without identifiableModels=false the generator makes an enumeration Identifiable and gives it no id.
generate_swift() {
    generate swift swift6 --additional-properties projectName=SalternAPI,identifiableModels=false
}
compile_swift() {
    quietly "$clients/swift.log" "the Swift client does not compile" with_quick_allocator swift build \
        --package-path "$clients/swift-life" --disable-index-store "${quick_options[@]}"
}
# URLSession on Linux reads the authorities that it trusts from this file alone.
live_swift() {
    # shellcheck disable=SC2016  # the words are for the shell in the namespace
    unshare --map-root-user --mount bash -c 'mount --bind -- "$SALTERN_TEST_CERTIFICATE" /etc/ssl/certs/ca-certificates.crt && exec "$1"' _ \
        "$clients/swift-life/.build/debug/Life"
}

# The generator's own archive has the Jackson that it generates for.
java_classes() { find "$repository/.venv/lib" -name openapi-generator.jar -printf '%p:'; }
generate_java() {
    generate java java --library native --additional-properties \
        invokerPackage=saltern,apiPackage=saltern.api,modelPackage=saltern.model,openApiNullable=false,useJakartaEe=true
}
compile_java() {
    local sources
    mapfile -t sources < <(find "$clients/java/src/main" "$clients/java-life" -name '*.java')
    rm -rf -- "$clients/java/classes"
    quietly "$clients/java.log" "the Java client does not compile" javac -J-XX:TieredStopAtLevel=1 -nowarn -proc:none -Xlint:none \
        -d "$clients/java/classes" -cp "$(java_classes)/usr/share/java/jakarta-annotation-api.jar" "${sources[@]}"
}
# The server closes a connection that is idle for 75 s. The client's library would send the next request on it.
live_java() {
    java -XX:TieredStopAtLevel=1 -Djdk.httpclient.keepalive.timeout=60 -cp "$clients/java/classes:$(java_classes)" Life
}

# Needs the standard library alone. With the default of disallowAdditionalPropertiesIfNotPresent a reply that has a member
# more than openapi.yaml would be an error.
generate_go() {
    generate go go --additional-properties \
        packageName=saltern,disallowAdditionalPropertiesIfNotPresent=false,withGoMod=true \
        --git-host example.org --git-user-id saltern --git-repo-id client
}
compile_go() (
    cd -- "$clients/go-life" || exit
    # Debian's compiler is older than what the generator writes there.
    sed --in-place 's/^go .*/go 1.19/' "$clients/go/go.mod"
    export GOPROXY=off GOFLAGS=-mod=mod GOCACHE=$clients/go-cache
    quietly "$clients/go.log" "the Go client does not compile" go build -o "$clients/go-life/life" .
)
live_go() { "$clients/go-life/life"; }

# Debian has the libraries, except Polly: csharp/Polly.cs replaces it. Its Newtonsoft.Json is older than the naming strategy, which the
# client does not need, because all of its members have names.
csharp_json=/usr/lib/cli/Newtonsoft.Json-5.0
generate_csharp() {
    generate csharp csharp --library httpclient --additional-properties packageName=Saltern,targetFramework=net48
}
compile_csharp() {
    local sources
    sed --in-place '/NamingStrategy = new CamelCaseNamingStrategy/,/}/d' \
        "$clients/csharp/src/Saltern/Client/ApiClient.cs" "$clients/csharp/src/Saltern/Model/AbstractOpenAPISchema.cs"
    mapfile -t sources < <(find "$clients/csharp/src/Saltern" "$clients/csharp-life" -name '*.cs')
    quietly "$clients/csharp.log" "the C# client does not compile" mcs -out:"$clients/csharp-life/Life.exe" -langversion:latest \
        -warn:0 -r:"$csharp_json/Newtonsoft.Json.dll" -r:System.Net.Http -r:System.Runtime.Serialization -r:System.Web \
        -r:System.ComponentModel.DataAnnotations "${sources[@]}"
}
live_csharp() { MONO_PATH=$csharp_json mono "$clients/csharp-life/Life.exe"; }
