-- The version of these files: a program of another one does not load them. CMakeLists.txt has the program's.
return "0.1.0"
