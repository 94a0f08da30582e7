import Foundation
import SalternClient
import Testing

/// An app all of whose types are of the main actor uses the kit as the README does.
@Suite struct MainActorAppTests {
    @Test func `types of the main actor are put, read, listed, observed and edited together`() async throws {
        let folder = URL.temporaryDirectory.appending(path: "saltern-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        let app = try await NotesApp(folder: folder)
        #expect(!app.model.isLocked)
        try await app.useEverything()
        #expect(
            app.shown == ["Buy salt.", "Buy pepper.", "list", "Buy pepper.", "Buy oil.", "shop", "[7]", "3 raw"])
        let state = await app.model.vault.isLocked
        #expect(state)
    }
}
