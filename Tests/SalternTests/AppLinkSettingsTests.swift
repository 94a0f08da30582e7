import SalternServer
import Testing

@testable import saltern

@Suite struct AppLinkSettingsTests {
    private static let fingerprint = Array(repeating: "AB", count: 32).joined(separator: ":")

    @Test func `apps are read from lists`() {
        var settings = Settings([
            "SALTERN_APPLE_APP_IDS": "A1B2C3D4E5.org.example.notes, A1B2C3D4E5.org.example.beta",
            "SALTERN_ANDROID_APPS": "org.example.notes=\(Self.fingerprint)", "SALTERN_APP_STORE_ID": "123456789",
        ])
        let links = settings.appLinks()
        #expect(settings.problems == [])
        #expect(links.apple.map(\.description) == ["A1B2C3D4E5.org.example.notes", "A1B2C3D4E5.org.example.beta"])
        #expect(links.android.map(\.fingerprint) == [Self.fingerprint])
        #expect(links.appStoreID?.description == "123456789")
    }

    @Test func `without them there are none`() {
        var settings = Settings([:])
        #expect(settings.appLinks() == AppLinks())
        #expect(settings.problems == [])
    }

    @Test(arguments: [
        ("SALTERN_APPLE_APP_IDS", ""), ("SALTERN_APPLE_APP_IDS", "A1B2C3D4E5.a,"),
        ("SALTERN_APPLE_APP_IDS", "A1B2C3D4E5.a,A1B2C3D4E5.a"), ("SALTERN_APPLE_APP_IDS", "org.example.notes"),
        ("SALTERN_ANDROID_APPS", "org.example.notes"), ("SALTERN_ANDROID_APPS", "org.example.notes=AB"),
        ("SALTERN_APP_STORE_ID", "id123456789"),
    ])
    func `what is malformed stops the start`(name: String, value: String) {
        var settings = Settings([name: value])
        _ = settings.appLinks()
        #expect(settings.problems.count == 1)
        #expect(settings.problems.first?.hasPrefix(name) == true)
    }
}
