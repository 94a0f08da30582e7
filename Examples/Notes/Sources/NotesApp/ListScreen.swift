#if canImport(SwiftUI)
    import NotesModel
    import SwiftUI

    /// All notes. As long as it is there, the list is current and the device in step with the server.
    struct ListScreen: View {
        let model: NotesModel
        @State private var searched = ""
        @State private var draft: NotesModel.Draft?
        @State private var conflict: NotesModel.Entry?
        @State private var showsSettings = false

        var body: some View {
            NavigationStack {
                List {
                    ForEach(found) { entry in row(entry) }
                        .onDelete { indices in
                            let ids = indices.map { found[$0].id }
                            model.perform { for id in ids { try await model.delete(id) } }
                        }
                    if model.unreadableCount > 0 {
                        Text("Update the app: \(model.unreadableCount) notes cannot be read by this version.")
                    }
                    if model.areDeletionsHeld {
                        Button("Another device has deleted many notes. Delete them here, too") {
                            model.perform { try await model.agreeToDeletions() }
                        }
                    }
                }
                .navigationTitle("Notes")
                .searchable(text: $searched)
                .toolbar {
                    Button("New") { model.perform { draft = try await model.draft() } }
                    Button("Settings") { showsSettings = true }
                }
            }
            .task(id: model.opening) { await model.account?.keepInSync() }
            .sheet(item: $draft) { NoteScreen(model: model, draft: $0) }
            .sheet(item: $conflict) { ConflictScreen(model: model, copy: $0) }
            .sheet(isPresented: $showsSettings) { SettingsScreen(model: model) }
        }

        private var found: [NotesModel.Entry] {
            if searched.isEmpty { return model.entries }
            return model.entries.filter { $0.note.text.contains(searched) || $0.note.tags.contains(searched) }
        }

        private func row(_ entry: NotesModel.Entry) -> some View {
            Button {
                if entry.conflict != nil {
                    conflict = entry
                } else {
                    model.perform { draft = try await model.draft(entry.id) }
                }
            } label: {
                VStack(alignment: .leading) {
                    Text(entry.note.headline)
                    if entry.conflict != nil { Text("Changed on two devices: choose") }
                    Text(entry.note.tags.joined(separator: ", "))
                }
            }
        }
    }
#endif
