#if canImport(SwiftUI)
    import Foundation
    import NotesModel
    import SalternClient
    import SwiftUI
    import UniformTypeIdentifiers

    /// One note, with its tags, files and link.
    struct NoteScreen: View {
        let model: NotesModel
        @State private var draft: NotesModel.Draft
        @State private var tags: String
        @State private var picksFile = false
        @State private var file: URL?
        @State private var link: URL?
        @Environment(\.dismiss) private var dismiss

        init(model: NotesModel, draft: NotesModel.Draft) {
            self.model = model
            _draft = State(initialValue: draft)
            _tags = State(initialValue: draft.note.tags.joined(separator: " "))
        }

        var body: some View {
            NavigationStack {
                Form {
                    TextEditor(text: $draft.note.text)
                    TextField("Tags", text: $tags)
                    Section("Files") {
                        ForEach(draft.note.attachments, id: \.id) { attachment in
                            Button(attachment.properties["name"] ?? "File") {
                                model.perform { try await open(attachment) }
                            }
                        }
                        if let file { ShareLink(item: file) }
                        Button("Add a file") { picksFile = true }
                    }
                    Section("A link that opens the note three times within a week") {
                        if let link { ShareLink(item: link) }
                        Button("Make a link") { model.perform(share) }
                    }
                }
                .toolbar {
                    Button("Cancel") { dismiss() }
                    Button("Save") { model.perform(save) }
                }
            }
            .fileImporter(isPresented: $picksFile, allowedContentTypes: [.item]) { picked in
                model.perform { try await attach(picked.get()) }
            }
        }

        private func save() async throws {
            draft.note.tags = tags.split(separator: " ").map(String.init)
            try await model.save(draft)
            dismiss()
        }

        private func share() async throws {
            guard let server = URL(string: Server.address) else { return }
            link = try await model.share(draft.id, server: server)
        }

        private func attach(_ file: URL) async throws {
            let isScoped = file.startAccessingSecurityScopedResource()
            defer { if isScoped { file.stopAccessingSecurityScopedResource() } }
            draft.note.attachments.append(try await model.attachment(of: file))
        }

        /// Leaves a copy that other apps can read; the system removes it.
        private func open(_ attachment: Attachment) async throws {
            let name = URL(filePath: attachment.properties["name"] ?? "file").lastPathComponent
            let copy = URL.temporaryDirectory.appending(path: name)
            try await model.save(attachment, to: copy)
            file = copy
        }
    }
#endif
