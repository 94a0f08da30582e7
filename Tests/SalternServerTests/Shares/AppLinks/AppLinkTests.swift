import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct AppLinkTests {
    private static let fingerprint = Array(repeating: "0A", count: 31).joined(separator: ":") + ":ff"

    @Test func `the platforms are told which apps open links to shares`() async throws {
        var configuration = TestApplication.configuration
        configuration.appLinks = AppLinks(
            apple: ["A1B2C3D4E5.org.example.notes", "A1B2C3D4E5.org.example.beta"].compactMap(AppleAppID.init),
            android: [
                "org.example.notes=\(Self.fingerprint)", "org.example.other=\(Self.fingerprint)",
                "org.example.notes=\(Self.fingerprint.replacing("0A", with: "0B"))",
            ].compactMap(AndroidApp.init))
        try await TestApplication.with(configuration) { app in
            let apple = try await app.client.get("/.well-known/apple-app-site-association")
            #expect(apple.status == 200)
            #expect(apple.fields["Content-Type"] == "application/json")
            #expect(
                apple.text == #"{"applinks":{"details":[{"appIDs":["A1B2C3D4E5.org.example.notes","#
                    + #""A1B2C3D4E5.org.example.beta"],"components":[{"/":"/s/*"},{"/":"/j/*"}]}]}}"#)
            let android = try await app.client.get("/.well-known/assetlinks.json")
            #expect(android.status == 200)
            #expect(android.fields["Content-Type"] == "application/json")
            let first = Self.fingerprint.uppercased()
            let second = first.replacing("0A", with: "0B")
            #expect(
                android.text == #"[{"relation":["delegate_permission/common.handle_all_urls"],"target":{"#
                    + #""namespace":"android_app","package_name":"org.example.notes","#
                    + #""sha256_cert_fingerprints":["\#(first)","\#(second)"]}},"#
                    + #"{"relation":["delegate_permission/common.handle_all_urls"],"target":{"#
                    + #""namespace":"android_app","package_name":"org.example.other","#
                    + #""sha256_cert_fingerprints":["\#(first)"]}}]"#)
        }
    }

    @Test func `without apps there is nothing`() async throws {
        try await TestApplication.with { app in
            for path in ["/.well-known/apple-app-site-association", "/.well-known/assetlinks.json"] {
                let reply = try await app.client.get(path)
                #expect(reply.code == "not_found")
            }
        }
    }

    @Test(arguments: [
        ("A1B2C3D4E5.org.example.notes", true), ("0123456789.x", true), ("ABCDEFGHIJ.org.ex-ample.Notes2", true),
        ("A1B2C3D4E.org.example", false), ("A1B2C3D4E5F.org.example", false), ("a1b2c3d4e5.org.example", false),
        ("A1B2C3D4E5", false), ("A1B2C3D4E5.", false), ("A1B2C3D4E5..a", false), ("A1B2C3D4E5.a.", false),
        ("A1B2C3D4E5.a_b", false), ("A1B2C3D4E5.*", false), ("A1B2C3D4E5.a b", false), ("A1B2C3D4E5.ä", false),
        ("A1B2C3D4E5." + String(repeating: "a", count: 245), false), ("", false),
    ])
    func `an app id of Apple's is a team and a bundle`(text: String, isValid: Bool) {
        #expect(AppleAppID(text)?.description == (isValid ? text : nil))
    }

    @Test(arguments: [
        ("org.example", true), ("org.example.notes_2", true), ("example", false), ("org..example", false),
        ("org.2example", false), ("org.ex-ample", false), (".org.example", false), ("org.example.", false), ("", false),
    ])
    func `a package has at least two parts`(package: String, isValid: Bool) {
        #expect((AndroidApp("\(package)=\(Self.fingerprint)") != nil) == isValid)
    }

    @Test(arguments: [
        "", "0A", String(fingerprint.dropLast(3)), fingerprint + ":00", fingerprint.replacing(":", with: ""),
        fingerprint.replacing("ff", with: "fg"), fingerprint + "=", fingerprint.replacing("0A:0A", with: "0A0A:"),
    ])
    func `a fingerprint is 32 bytes in hexadecimal with colons`(text: String) {
        #expect(AndroidApp("org.example.notes=\(text)") == nil)
    }

    @Test(arguments: [
        ("1", true), ("123456789", true), ("", false), ("0", false), ("0123", false), ("12a", false), ("-1", false),
        ("1234567890123456", false),
    ])
    func `an App Store id is a number`(text: String, isValid: Bool) {
        #expect((AppStoreID(text) != nil) == isValid)
    }
}
